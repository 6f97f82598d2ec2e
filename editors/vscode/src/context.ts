// Whether the file at hand is a workflow, for the buttons above it: the server knows.
import * as vscode from 'vscode';
import type { Server } from './server/server';

const AFTER_TYPING = 500;

/** Keep the context key `agentloom.workflow` up to date. */
export function watchActiveFile(server: Server): vscode.Disposable {
  let timer: NodeJS.Timeout | undefined;
  let workflow: vscode.TextDocument | undefined; // one that was a workflow stays one
  const look = async () => {
    const document = vscode.window.activeTextEditor?.document;
    if (document === undefined) return; // the graph has the focus, or the runs
    const { client } = server;
    const yaml = document.languageId === 'yaml' || document.languageId === 'agentloom';
    const uri = document.uri.toString();
    const graph = yaml && client !== undefined ? await client.sendRequest<unknown>('agentloom/graph', { textDocument: { uri } }) : null;
    if (vscode.window.activeTextEditor?.document !== document) return;
    workflow = graph === null ? undefined : document;
    await vscode.commands.executeCommand('setContext', 'agentloom.workflow', graph !== null);
  };
  const later = (wait: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => void look().catch(() => undefined), wait);
  };
  return vscode.Disposable.from(
    vscode.window.onDidChangeActiveTextEditor(() => {
      later(0);
    }),
    vscode.workspace.onDidChangeTextDocument(({ document }) => {
      if (document === vscode.window.activeTextEditor?.document && document !== workflow) later(AFTER_TYPING);
    }),
    server.onChange(() => {
      later(0);
    }),
    new vscode.Disposable(() => {
      clearTimeout(timer);
    }),
  );
}
