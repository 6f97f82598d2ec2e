// Where the language server may be, in the order in which it is looked for; knows neither VS Code nor processes.

/** The oldest agentloom that this extension works with. */
export const OLDEST = '0.6.0';

export type How = 'path-setting' | 'interpreter-setting' | 'python-extension' | 'folder' | 'search-path';

/** A way to start agentloom. */
export interface Candidate {
  readonly how: How;
  readonly command: string;
  /** What stands before agentloom's own arguments. */
  readonly before: readonly string[];
}

/** What is known of the places. Empty texts are settings that say nothing. */
export interface Places {
  readonly path: string;
  readonly interpreter: string;
  /** The interpreter that the Python extension has chosen. */
  readonly chosen: string | undefined;
  /** Interpreters of environments in the workspace's folders, such as `.venv/bin/python`. */
  readonly environments: readonly string[];
}

/** Return the ways to try, the first first. A setting stands alone: who wrote one wants to hear that it is wrong. */
export function candidates(places: Places): Candidate[] {
  if (places.path) return [{ how: 'path-setting', command: places.path, before: [] }];
  if (places.interpreter) return [module('interpreter-setting', places.interpreter)];
  const found: Candidate[] = [];
  if (places.chosen) found.push(module('python-extension', places.chosen));
  for (const one of places.environments) {
    if (one !== places.chosen) found.push(module('folder', one));
  }
  found.push({ how: 'search-path', command: 'agentloom', before: [] });
  return found;
}

function module(how: How, interpreter: string): Candidate {
  return { how, command: interpreter, before: ['-m', 'agentloom'] };
}

/** How a trial of a candidate ended. */
export type Trial =
  | { readonly end: 'found'; readonly version: string }
  | { readonly end: 'old'; readonly version: string }
  | { readonly end: 'no-program' }
  | { readonly end: 'no-agentloom' }
  | { readonly end: 'broken'; readonly words: string };

/** What a process did: its exit code (null when it never started or was killed), the system's error code, and what it wrote. */
export interface Done {
  readonly code: number | null;
  readonly error?: string | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Judge what `agentloom --version` did. */
export function judge(done: Done): Trial {
  if (done.error === 'ENOENT') return { end: 'no-program' };
  const version = /^agentloom,? (?:version )?(\d+(?:\.\d+)*\S*)/m.exec(done.stdout)?.[1];
  if (done.code === 0 && version !== undefined) return { end: compare(version, OLDEST) < 0 ? 'old' : 'found', version };
  if (/No module named '?agentloom'?(?![.\w])/.test(done.stderr)) return { end: 'no-agentloom' };
  const last = done.stderr.trim().split('\n').at(-1) ?? '';
  return { end: 'broken', words: last || (done.error ?? (done.code === null ? 'it gave no answer' : `it ended with ${done.code}`)) };
}

/** Compare two versions by their numbers: negative when the first is older. `0.6.0.dev1` counts as 0.6.0. */
export function compare(one: string, other: string): number {
  const [first, second] = [numbers(one), numbers(other)];
  for (let at = 0; at < Math.max(first.length, second.length); at++) {
    const difference = (first[at] ?? 0) - (second[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function numbers(version: string): number[] {
  return (/^\d+(?:\.\d+)*/.exec(version)?.[0] ?? '').split('.').map(Number);
}

const WHERE: Record<How, string> = {
  'path-setting': 'as the setting `agentloom.server.path` says',
  'interpreter-setting': 'as the setting `agentloom.interpreter` says',
  'python-extension': 'the interpreter chosen in the Python extension',
  folder: 'an environment of this folder',
  'search-path': 'on the search path',
};

/** Tell in words where something was looked for. */
export function where(candidate: Candidate): string {
  return `\`${candidate.command}\` (${WHERE[candidate.how]})`;
}

/** Say why there is no server, from all trials: the one that tells most comes first. */
export function explain(trials: readonly (readonly [Candidate, Trial])[]): string {
  for (const [candidate, trial] of trials) {
    if (trial.end === 'old') {
      return `agentloom ${trial.version}, ${where(candidate)}, is too old for this extension, which needs ${OLDEST} or later`;
    }
    if (trial.end === 'broken') return `agentloom doesn't start, ${where(candidate)}: ${trial.words}`;
    if (candidate.how === 'path-setting') return `there is no program ${where(candidate)}`;
    if (candidate.how === 'interpreter-setting') {
      return trial.end === 'no-program' ? `there is no interpreter ${where(candidate)}` : `agentloom is not installed for ${where(candidate)}`;
    }
  }
  const looked = trials.map(([candidate]) => candidate).filter((one) => one.how !== 'search-path');
  const also = looked.map((one) => `, nor in the environment of \`${one.command}\``).join('');
  return `agentloom is not installed: it is not on the search path${also}`;
}
