// What came of runs, on pages of their own: one run to be read, two side by side.
import * as vscode from 'vscode';
import type { Documents } from '../documents';
import { comparable, page } from './result';
import type { RunsSource } from './source';

/** Show what came of a run, as a page. */
export async function showRun(source: RunsSource, documents: Documents, runId: string, folder?: string): Promise<void> {
  const run = await source.details(runId, folder);
  if (run === undefined) {
    void vscode.window.showErrorMessage(`There is no run ${runId}.`);
    return;
  }
  await vscode.commands.executeCommand('markdown.showPreview', documents.keep(`${run.workflow} ${run.runId}.md`, page(run)));
}

/** Show all that is known of a run, as JSON. */
export async function showJson(source: RunsSource, documents: Documents, runId: string, folder?: string): Promise<void> {
  const run = await source.details(runId, folder);
  if (run !== undefined) await documents.show(`${run.workflow} ${run.runId}.json`, `${JSON.stringify(run, null, 2)}\n`);
}

/** Show two runs side by side. */
export async function compareRuns(source: RunsSource, documents: Documents, chosen: readonly { readonly runId: string; readonly folder: string }[]): Promise<void> {
  const runs = await Promise.all(chosen.slice(0, 2).map((one) => source.details(one.runId, one.folder)));
  const [first, second] = runs;
  if (first === undefined || second === undefined) {
    void vscode.window.showInformationMessage('Choose two runs to compare.');
    return;
  }
  const [older, newer] = (first.created ?? '') <= (second.created ?? '') ? [first, second] : [second, first];
  const address = (run: typeof older) => documents.keep(`${run.workflow} ${run.runId}.txt`, comparable(run));
  const title = `${older.workflow} ${older.runId.slice(0, 6)} ↔ ${newer.runId.slice(0, 6)}`;
  await vscode.commands.executeCommand('vscode.diff', address(older), address(newer), title);
}
