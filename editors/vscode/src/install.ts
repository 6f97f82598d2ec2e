// What happens when agentloom is missing: it is said once, and an installation is offered.
import * as path from 'node:path';
import * as vscode from 'vscode';
import { environments } from './server/locate';
import { INSTALLATION, run } from './server/processes';
import { knownInterpreters } from './server/python';
import { OLDEST } from './server/find';

const INSTALL = 'Install…';
const UPDATE = 'Update…';
const CHOOSE = 'Choose Interpreter…';
const SETTINGS = 'Open Settings';

/** Tell that there is no agentloom, and offer the ways out. */
export async function offer(words: string, old: boolean): Promise<void> {
  const message = words.startsWith('agentloom') ? `${words}.` : `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
  const chosen = await vscode.window.showWarningMessage(message, old ? UPDATE : INSTALL, CHOOSE, SETTINGS);
  if (chosen === INSTALL || chosen === UPDATE) await vscode.commands.executeCommand('agentloom.installServer');
  else if (chosen === CHOOSE) await vscode.commands.executeCommand('agentloom.chooseInterpreter');
  else if (chosen === SETTINGS) await vscode.commands.executeCommand('workbench.action.openSettings', 'agentloom.server');
}

interface Place extends vscode.QuickPickItem {
  readonly interpreter?: string;
  /** The folder that gets an environment of its own. */
  readonly fresh?: string;
  readonly browse?: boolean;
}

async function choosePlace(title: string, makes: boolean): Promise<string | undefined> {
  const places: Place[] = [];
  const own = environments();
  const known = (await knownInterpreters()).filter((one) => !own.includes(one));
  for (const one of own) places.push({ label: '$(folder) Environment of this folder', description: one, interpreter: one });
  const folder = vscode.workspace.workspaceFolders?.[0];
  if (makes && folder?.uri.scheme === 'file' && own.length === 0) {
    places.push({ label: '$(add) Create .venv in this folder', description: folder.name, detail: 'a new environment, for this project alone', fresh: folder.uri.fsPath });
  }
  for (const one of known) places.push({ label: `$(snake) ${path.basename(path.dirname(path.dirname(one)))}`, description: one, interpreter: one });
  places.push({ label: '$(folder-opened) Find a Python interpreter…', browse: true });
  const chosen = await vscode.window.showQuickPick(places, { title, placeHolder: 'Python 3.11 or newer', matchOnDescription: true });
  if (chosen?.fresh !== undefined) return makeEnvironment(chosen.fresh);
  if (chosen?.browse) {
    const files = await vscode.window.showOpenDialog({ title, openLabel: 'Choose', canSelectMany: false });
    return files?.[0]?.fsPath;
  }
  return chosen?.interpreter;
}

async function makeEnvironment(folder: string): Promise<string | undefined> {
  const home = path.join(folder, '.venv');
  for (const python of process.platform === 'win32' ? ['py', 'python'] : ['python3', 'python']) {
    const done = await withProgress('Making a Python environment in .venv', () => run(python, ['-m', 'venv', home], { timeout: INSTALLATION }));
    if (done.code === 0) return path.join(home, ...(process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python']));
    if (done.error !== 'ENOENT') {
      void vscode.window.showErrorMessage(`The environment couldn't be made: ${lastLine(done.stderr)}`);
      return undefined;
    }
  }
  void vscode.window.showErrorMessage('There is no Python on the search path. Install Python 3.11 or newer first.');
  return undefined;
}

/** Install agentloom into an environment that the user chooses. Returns whether it is there now. */
export async function install(log: vscode.LogOutputChannel): Promise<boolean> {
  const interpreter = await choosePlace('Install agentloom into…', true);
  if (interpreter === undefined) return false;
  const pip = ['-m', 'pip', 'install', '--upgrade', '--disable-pip-version-check', `agentloom>=${OLDEST}`];
  const done = await withProgress(`Installing agentloom for ${interpreter}`, () => run(interpreter, pip, { timeout: INSTALLATION }));
  log.info(done.stdout);
  if (done.code !== 0) {
    log.error(done.stderr);
    log.show(true);
    void vscode.window.showErrorMessage(`agentloom couldn't be installed: ${lastLine(done.stderr)}`);
    return false;
  }
  if (!environments().includes(interpreter)) await remember(interpreter);
  return true;
}

/** Let the user choose the interpreter that has agentloom. */
export async function chooseInterpreter(): Promise<void> {
  const interpreter = await choosePlace('Run agentloom with…', false);
  if (interpreter !== undefined) await remember(interpreter);
}

async function remember(interpreter: string): Promise<void> {
  const target = vscode.workspace.workspaceFolders === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
  await vscode.workspace.getConfiguration('agentloom').update('interpreter', interpreter, target);
}

function withProgress<T>(title: string, work: () => Promise<T>): Thenable<T> {
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, work);
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
