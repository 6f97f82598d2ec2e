// All graph panels: one a workflow.
import * as vscode from 'vscode';
import type { RunEventParams } from '../protocol';
import type { Server } from '../server/server';
import { GraphPanel, VIEW } from './panel';

export class GraphPanels implements vscode.WebviewPanelSerializer, vscode.Disposable {
  readonly #open = new Map<string, GraphPanel>();
  readonly #registration = vscode.window.registerWebviewPanelSerializer(VIEW, this);

  constructor(
    private readonly server: Server,
    private readonly extension: vscode.Uri,
  ) {}

  /** Show the graph of a workflow, beside its text. */
  show(uri: vscode.Uri): void {
    const there = this.#open.get(uri.toString());
    if (there !== undefined) {
      there.reveal();
      return;
    }
    const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    this.#keep(vscode.window.createWebviewPanel(VIEW, 'Graph', column, { retainContextWhenHidden: true }), uri);
  }

  /** VS Code has started again, and a panel was open. */
  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: unknown): Promise<void> {
    const uri = typeof state === 'object' && state !== null && 'uri' in state ? String(state.uri) : undefined;
    if (uri === undefined) {
      panel.dispose();
      return;
    }
    const address = vscode.Uri.parse(uri);
    await vscode.workspace.openTextDocument(address).then(undefined, () => undefined); // it says itself when it is gone
    this.#keep(panel, address);
  }

  take(params: RunEventParams): void {
    for (const panel of this.#open.values()) panel.take(params);
  }

  #keep(panel: vscode.WebviewPanel, uri: vscode.Uri): void {
    const key = uri.toString();
    this.#open.set(key, new GraphPanel(panel, uri, this.server, this.extension, () => this.#open.delete(key)));
  }

  dispose(): void {
    this.#registration.dispose();
  }
}
