// The item in the status bar: how the server stands, and what runs.
import * as vscode from 'vscode';
import type { Ongoing } from './runs/ongoing';
import type { Standing } from './server/server';
import { money } from './words';

export class StatusItem implements vscode.Disposable {
  readonly #item = vscode.window.createStatusBarItem('agentloom', vscode.StatusBarAlignment.Left, 1);
  #standing: Standing = { state: 'stopped' };
  #running: readonly Ongoing[] = [];

  constructor() {
    this.#item.name = 'agentloom';
    this.#item.command = 'agentloom.menu';
    this.#draw();
    this.#item.show();
  }

  stands(standing: Standing): void {
    this.#standing = standing;
    this.#draw();
  }

  runs(running: readonly Ongoing[]): void {
    this.#running = running;
    this.#draw();
  }

  #draw(): void {
    const { text, tooltip, alarming } = describe(this.#standing, this.#running);
    this.#item.text = text;
    this.#item.tooltip = tooltip;
    this.#item.backgroundColor = alarming ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    this.#item.accessibilityInformation = { label: tooltip };
  }

  dispose(): void {
    this.#item.dispose();
  }
}

function describe(standing: Standing, running: readonly Ongoing[]): { text: string; tooltip: string; alarming: boolean } {
  const [first] = running;
  if (first !== undefined) {
    const text = running.length === 1 ? `step ${Math.min(first.done + 1, first.steps)}/${first.steps} · ${money(first.costUsd)}` : `${running.length} runs`;
    const tooltip = running.map((one) => `${one.workflow}: ${one.done} of ${one.steps} steps done, ${money(one.costUsd)} so far`).join('\n');
    return { text: `$(loading~spin) agentloom: ${text}`, tooltip, alarming: false };
  }
  switch (standing.state) {
    case 'starting':
      return { text: '$(sync~spin) agentloom', tooltip: 'The agentloom language server is starting', alarming: false };
    case 'running':
      return { text: '$(type-hierarchy-sub) agentloom', tooltip: `agentloom ${standing.version}: ${standing.command}`, alarming: false };
    case 'stopped':
      return { text: '$(circle-slash) agentloom', tooltip: 'The agentloom language server is not running', alarming: false };
    case 'missing':
      return { text: '$(warning) agentloom', tooltip: standing.words, alarming: true };
  }
}
