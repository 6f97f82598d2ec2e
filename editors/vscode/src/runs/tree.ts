// The view of runs: those that go on and those that were kept, the latest first.
import * as vscode from 'vscode';
import type { Run } from '../protocol';
import { describe } from './describe';
import type { RunsSource } from './source';

/** A line of the tree; commands of its menu are handed this. */
export class RunItem extends vscode.TreeItem {
  constructor(readonly run: Run) {
    const { label, description, tooltip, icon, colour, context } = describe(run, Date.now());
    super(label, vscode.TreeItemCollapsibleState.None);
    this.id = `${run.folder}/${run.runId}`;
    this.description = description;
    this.tooltip = tooltip;
    this.iconPath = new vscode.ThemeIcon(icon, colour === undefined ? undefined : new vscode.ThemeColor(colour));
    this.contextValue = context;
    this.command = { command: 'agentloom.showRun', title: 'Show', arguments: [{ runId: run.runId, folder: run.folder }] };
    this.accessibilityInformation = { label: `${label}, ${description}` };
  }
}

const SOON = 150;

export class RunsTree implements vscode.TreeDataProvider<RunItem>, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.#changed.event;
  readonly view: vscode.TreeView<RunItem>;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly source: RunsSource) {
    this.view = vscode.window.createTreeView('agentloom.runs', { treeDataProvider: this, canSelectMany: true });
  }

  /** Ask the server again, soon. */
  refresh(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#changed.fire();
    }, SOON);
  }

  getTreeItem(item: RunItem): vscode.TreeItem {
    return item;
  }

  async getChildren(item?: RunItem): Promise<RunItem[]> {
    if (item !== undefined) return [];
    return (await this.source.list()).map((run) => new RunItem(run));
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.view.dispose();
    this.#changed.dispose();
  }
}
