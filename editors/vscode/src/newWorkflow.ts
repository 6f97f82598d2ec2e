// `agentloom: New Workflow`: a file that is right from the start, and runs offline.
import * as vscode from 'vscode';
import { fileName, starter, wrongName } from './starter';

/** Ask for a name, and open a new workflow of it: in the folder, or unsaved where there is none. */
export async function newWorkflow(): Promise<void> {
  const name = await vscode.window.showInputBox({
    title: 'New workflow',
    prompt: 'What is it called?',
    placeHolder: 'weekly-report',
    validateInput: wrongName,
  });
  if (name === undefined) return;
  const folder = vscode.workspace.workspaceFolders?.[0];
  const text = starter(name);
  if (folder === undefined) {
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: 'yaml', content: text }));
    return;
  }
  const uri = vscode.Uri.joinPath(folder.uri, fileName(name));
  try {
    await vscode.workspace.fs.stat(uri);
    void vscode.window.showErrorMessage(`There is a file ${fileName(name)} already.`);
  } catch {
    await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
  }
  await vscode.window.showTextDocument(uri);
}
