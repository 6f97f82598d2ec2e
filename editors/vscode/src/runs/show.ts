// What came of runs, on pages of their own: one run to be read, two side by side.
import * as vscode from 'vscode';
import type { Documents } from '../documents';
import { comparable, page } from './result';
import type { Run } from '../protocol';
import { describe } from './describe';
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

/** Show two runs side by side; let the user choose where two aren't chosen yet. */
export async function compareRuns(source: RunsSource, documents: Documents, given: readonly Run[]): Promise<void> {
  const chosen = given.length === 2 ? given : await chooseTwo(await source.list());
  const [first, second] = await Promise.all(chosen.map((one) => source.details(one.runId, one.folder)));
  if (first === undefined || second === undefined) return;
  const [older, newer] = (first.created ?? '') <= (second.created ?? '') ? [first, second] : [second, first];
  const address = (run: typeof older) => documents.keep(`${run.workflow} ${run.runId}.txt`, comparable(run));
  const title = `${older.workflow} ${older.runId.slice(0, 6)} ↔ ${newer.runId.slice(0, 6)}`;
  await vscode.commands.executeCommand('vscode.diff', address(older), address(newer), title);
}

async function chooseTwo(runs: readonly Run[]): Promise<readonly Run[]> {
  if (runs.length < 2) {
    void vscode.window.showInformationMessage('There are no two runs to compare yet.');
    return [];
  }
  const item = (run: Run) => {
    const { label, description } = describe(run, Date.now());
    return { label, description, run };
  };
  const first = await vscode.window.showQuickPick(runs.map(item), { title: 'Compare which run…', matchOnDescription: true });
  if (first === undefined) return [];
  const others = runs.filter((run) => run.runId !== first.run.runId);
  others.sort((one, other) => Number(other.workflow === first.run.workflow) - Number(one.workflow === first.run.workflow));
  const second = await vscode.window.showQuickPick(others.map(item), { title: '… with which?', matchOnDescription: true });
  return second === undefined ? [] : [first.run, second.run];
}
