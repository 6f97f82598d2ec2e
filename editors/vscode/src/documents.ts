// Documents that are on no disk: explanations of codes, results of runs.
import * as vscode from 'vscode';

export const SCHEME = 'agentloom';

/** Hands out texts under names; a name given again has its document show the new text. */
export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #texts = new Map<string, string>();
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly #registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  readonly onDidChange = this.#changed.event;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.path) ?? '';
  }

  /** Keep a text under a path such as `run/3f9c.json`, and return its address. */
  keep(path: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${path}` });
    this.#texts.set(uri.path, text);
    this.#changed.fire(uri);
    return uri;
  }

  /** Keep a text, and show it. */
  async show(path: string, text: string, column = vscode.ViewColumn.Active): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.keep(path, text));
    await vscode.window.showTextDocument(document, { preview: true, viewColumn: column });
  }

  dispose(): void {
    this.#registration.dispose();
    this.#changed.dispose();
  }
}
