// `agentloom: Explain a Code`: what a diagnostic means, offline.
import * as vscode from 'vscode';
import type { Documents } from './documents';
import type { Server } from './server/server';

/** Explain a code; without one, let the user choose, those of the file at hand first. */
export async function explainCode(server: Server, documents: Documents, given?: string): Promise<void> {
  const code = given ?? (await choose(server));
  if (code === undefined) return;
  const done = await server.command(['explain', code, '--color', 'never']);
  if (done?.code === 0) await documents.show(`${code}.txt`, done.stdout, vscode.ViewColumn.Beside);
  else void vscode.window.showErrorMessage(done?.stderr.trim() ?? 'agentloom was not found.');
}

interface Line extends vscode.QuickPickItem {
  readonly code?: string;
}

async function choose(server: Server): Promise<string | undefined> {
  const done = await server.command(['explain', '--list']);
  if (done?.code !== 0) {
    void vscode.window.showErrorMessage(done?.stderr.trim() ?? 'agentloom was not found.');
    return undefined;
  }
  const uri = vscode.window.activeTextEditor?.document.uri;
  const here = new Set(uri === undefined ? [] : vscode.languages.getDiagnostics(uri).map(codeOf));
  const all = rules(done.stdout);
  const line = (one: Rule): Line => ({ code: one.code, label: one.code, description: `${one.name}, ${one.severity}`, detail: one.meaning });
  const found = all.filter((one) => here.has(one.code)).map(line);
  const lines: Line[] = found.length === 0 ? all.map(line) : [{ label: 'In this file', kind: SEPARATOR }, ...found, { label: 'All', kind: SEPARATOR }, ...all.map(line)];
  return (await vscode.window.showQuickPick(lines, { title: 'Explain a code', matchOnDescription: true, matchOnDetail: true }))?.code;
}

const SEPARATOR = vscode.QuickPickItemKind.Separator;

function codeOf(diagnostic: vscode.Diagnostic): string {
  const { code } = diagnostic;
  return String(typeof code === 'object' ? code.value : (code ?? ''));
}

interface Rule {
  readonly code: string;
  readonly severity: string;
  readonly name: string;
  readonly meaning: string;
}

function rules(listed: string): Rule[] {
  return listed.split('\n').flatMap((line) => {
    const [, code, severity, name, meaning] = /^(AL\d{3})\s+(\S+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return code && severity && name && meaning ? [{ code, severity, name, meaning }] : [];
  });
}
