// Finds agentloom on this machine: asks the settings, the Python extension, the folders and the search path.
import { existsSync } from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { type Candidate, candidates, type Places, type Trial, judge } from './find';
import { run } from './processes';
import { chosenInterpreter } from './python';

/** Agentloom, found. */
export interface Found {
  readonly candidate: Candidate;
  readonly version: string;
}

/** What was tried, and what came of it. */
export interface Search {
  readonly found?: Found;
  readonly trials: readonly (readonly [Candidate, Trial])[];
}

/** Look for an agentloom that this extension works with. */
export async function locate(log: vscode.LogOutputChannel): Promise<Search> {
  const trials: [Candidate, Trial][] = [];
  for (const candidate of candidates(await places())) {
    const trial = await tryOut(candidate);
    log.info(`${candidate.command} ${[...candidate.before, '--version'].join(' ')}: ${trial.end}${'version' in trial ? ` ${trial.version}` : ''}`);
    trials.push([candidate, trial]);
    if (trial.end === 'found') return { found: { candidate, version: trial.version }, trials };
  }
  return { trials };
}

/** Start a candidate, and say whether it is agentloom, and which. */
export async function tryOut(candidate: Candidate): Promise<Trial> {
  const cwd = folders()[0];
  return judge(await run(candidate.command, [...candidate.before, '--version'], { env: environment(), ...(cwd === undefined ? {} : { cwd }) }));
}

/** The environment that agentloom is started in. */
export function environment(): NodeJS.ProcessEnv {
  const more = vscode.workspace.getConfiguration('agentloom').get<Record<string, string>>('server.environment') ?? {};
  return { ...process.env, PYTHONUTF8: '1', ...more };
}

/** Return the interpreters of environments in the workspace's folders; none in a workspace that isn't trusted. */
export function environments(): string[] {
  if (!vscode.workspace.isTrusted) return [];
  const inside = process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python'];
  return folders()
    .flatMap((folder) => ['.venv', 'venv'].map((name) => path.join(folder, name, ...inside)))
    .filter((one) => existsSync(one));
}

function folders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((one) => one.uri.scheme === 'file').map((one) => one.uri.fsPath);
}

async function places(): Promise<Places> {
  const settings = vscode.workspace.getConfiguration('agentloom');
  return {
    path: absolute(settings.get<string>('server.path') ?? ''),
    interpreter: absolute(settings.get<string>('interpreter') ?? ''),
    chosen: await chosenInterpreter(vscode.workspace.workspaceFolders?.[0]?.uri),
    environments: environments(),
  };
}

/** A path as it is written in a setting: `~` is the home folder, `${workspaceFolder}` and relative paths with a slash mean the first folder. */
function absolute(written: string): string {
  const folder = folders()[0] ?? '';
  const home = process.env.HOME ?? process.env.USERPROFILE ?? '~';
  const whole = written.trim().replace(/^~(?=[/\\]|$)/, home).replaceAll('${workspaceFolder}', folder);
  return folder && /[/\\]/.test(whole) && !path.isAbsolute(whole) ? path.join(folder, whole) : whole;
}
