// The graph of one workflow beside its text.
import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import type { Direction, Graph, GraphNode, RunEventParams } from '../protocol';
import type { Server } from '../server/server';
import { html } from './html';
import type { FromPage, ToPage } from './messages';
import { allNodes, nodeAt, problemsOf } from './places';

export const VIEW = 'agentloom.graph';
const AFTER_TYPING = 250;

/** One panel; it asks the server for the drawing again whenever the text changes. */
export class GraphPanel implements vscode.Disposable {
  readonly #disposables: vscode.Disposable[] = [];
  #graph: Graph | undefined;
  /** Drawings of files that steps run, by the path of the step, with the file. */
  readonly #children = new Map<string, Graph>();
  #direction: Direction;
  #ready = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly panel: vscode.WebviewPanel,
    readonly uri: vscode.Uri,
    private readonly server: Server,
    extension: vscode.Uri,
    private readonly gone: () => void,
  ) {
    this.#direction = vscode.workspace.getConfiguration('agentloom').get<Direction>('graph.direction') ?? 'down';
    const dist = vscode.Uri.joinPath(extension, 'dist');
    const { webview } = panel;
    webview.options = { enableScripts: true, localResourceRoots: [dist] };
    panel.iconPath = vscode.Uri.joinPath(extension, 'media', 'icon.png');
    const file = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
    webview.html = html(webview.cspSource, randomBytes(18).toString('base64'), file('graph.js'), file('graph.css'));
    this.#disposables.push(
      webview.onDidReceiveMessage((message: FromPage) => void this.#hear(message)),
      panel.onDidDispose(() => {
        this.dispose();
      }),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0 && this.#concerns(document.uri)) this.#later();
      }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (this.#concerns(textEditor.document.uri)) this.#follow(textEditor);
      }),
      vscode.languages.onDidChangeDiagnostics(({ uris }) => {
        if (uris.some((one) => this.#concerns(one))) this.#say({ kind: 'problems', problems: this.#problems() });
      }),
      server.onChange(() => {
        this.#later();
      }),
    );
  }

  reveal(): void {
    this.panel.reveal(undefined, true);
  }

  /** A run of this workflow has gone on. */
  take({ uri, event }: RunEventParams): void {
    if (uri !== this.#graph?.uri && uri !== this.uri.toString()) return;
    this.#say({ kind: 'event', event });
    if (event.event === 'run_ended') void this.#draw();
  }

  #concerns(uri: vscode.Uri): boolean {
    return uri.toString() === this.uri.toString();
  }

  #later(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#draw(), AFTER_TYPING);
  }

  #say(message: ToPage): void {
    if (this.#ready) void this.panel.webview.postMessage(message);
  }

  async #ask(uri: vscode.Uri): Promise<Graph | null | undefined> {
    const { client } = this.server;
    return client?.sendRequest<Graph | null>('agentloom/graph', { textDocument: { uri: uri.toString() }, direction: this.#direction });
  }

  async #draw(): Promise<void> {
    if (!this.#ready) return;
    const graph = await this.#ask(this.uri);
    if (graph === undefined) this.#say({ kind: 'nothing', words: 'The language server is not running.' });
    else if (graph === null || graph.nodes.length === 0) this.#say({ kind: 'nothing', words: 'There are no steps to draw yet.' });
    else {
      this.#graph = graph;
      this.panel.title = `Graph: ${graph.name}`;
      this.#say({ kind: 'graph', graph, direction: this.#direction, problems: this.#problems() });
      for (const path of this.#children.keys()) await this.#enter(path, this.#children.get(path)?.uri);
      const editor = vscode.window.visibleTextEditors.find((one) => this.#concerns(one.document.uri));
      if (editor !== undefined) this.#follow(editor);
    }
  }

  #problems(): ReturnType<typeof problemsOf> {
    if (this.#graph === undefined) return {};
    const found = vscode.languages.getDiagnostics(this.uri).filter((one) => one.severity <= vscode.DiagnosticSeverity.Warning);
    return problemsOf(this.#graph, found.map((one) => ({ range: one.range, error: one.severity === vscode.DiagnosticSeverity.Error })));
  }

  #follow(editor: vscode.TextEditor): void {
    const path = this.#graph && nodeAt(this.#graph, editor.selection.active)?.path;
    this.#say({ kind: 'cursor', path: path ?? null });
  }

  async #hear(message: FromPage): Promise<void> {
    switch (message.kind) {
      case 'ready':
        this.#ready = true;
        return this.#draw();
      case 'open':
        return this.#open(message.path, message.focus);
      case 'enter':
        return this.#enter(message.path, message.uri);
      case 'direction':
        this.#direction = message.direction;
        return this.#draw();
      case 'export':
        return this.#export(message.svg);
    }
  }

  /** Find a step by its path, in the panel's own file or in one that a step runs. */
  #find(path: string): readonly [vscode.Uri, GraphNode] | undefined {
    for (const node of this.#graph === undefined ? [] : allNodes(this.#graph)) {
      if (node.path === path) return [this.uri, node];
    }
    for (const [prefix, graph] of this.#children) {
      for (const node of allNodes(graph)) {
        if (`${prefix}.${node.path}` === path) return [vscode.Uri.parse(graph.uri), node];
      }
    }
    return undefined;
  }

  async #open(path: string, focus: boolean): Promise<void> {
    const [uri, node] = this.#find(path) ?? [];
    if (uri === undefined || node === undefined) return;
    const shown = vscode.window.visibleTextEditors.find((one) => one.document.uri.toString() === uri.toString());
    const document = shown?.document ?? (await vscode.workspace.openTextDocument(uri));
    const { start, end } = node.nameRange;
    const range = new vscode.Range(start.line, start.character, end.line, end.character);
    const column = shown?.viewColumn ?? (this.panel.viewColumn === vscode.ViewColumn.One ? vscode.ViewColumn.Beside : vscode.ViewColumn.One);
    const editor = await vscode.window.showTextDocument(document, { viewColumn: column, preserveFocus: !focus });
    editor.selection = new vscode.Selection(range.start, range.start);
    editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  /** Draw the workflow in a file that a step runs. The server knows files that are open. */
  async #enter(path: string, uri: string | undefined): Promise<void> {
    if (uri === undefined) return;
    const address = vscode.Uri.parse(uri);
    try {
      await vscode.workspace.openTextDocument(address);
    } catch {
      void vscode.window.showErrorMessage(`${vscode.workspace.asRelativePath(address)} can't be opened.`);
      return;
    }
    const graph = await this.#ask(address);
    if (!graph) return;
    this.#children.set(path, graph);
    this.#say({ kind: 'child', path, drawing: graph });
  }

  async #export(svg: string): Promise<void> {
    const near = this.uri.scheme === 'file' ? this.uri : vscode.workspace.workspaceFolders?.[0]?.uri;
    const name = `${this.#graph?.name ?? 'workflow'}.svg`;
    const options = { title: 'Save the graph', filters: { SVG: ['svg'] } };
    const target = await vscode.window.showSaveDialog(near === undefined ? options : { ...options, defaultUri: vscode.Uri.joinPath(near, '..', name) });
    if (target === undefined) return;
    await vscode.workspace.fs.writeFile(target, new TextEncoder().encode(svg));
    const open = 'Open';
    if ((await vscode.window.showInformationMessage(`Saved ${vscode.workspace.asRelativePath(target)}`, open)) === open) {
      await vscode.commands.executeCommand('vscode.open', target);
    }
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const one of this.#disposables.splice(0)) one.dispose();
    this.gone();
  }
}
