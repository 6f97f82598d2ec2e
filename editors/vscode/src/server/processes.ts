// Other programs: started, waited for, and heard.
import { execFile } from 'node:child_process';
import type { Done } from './find';

export type { Done };

const PATIENCE = 30_000;
/** Milliseconds that an installation may take. */
export const INSTALLATION = 15 * 60_000;

/** Run a program to its end; it never fails, and what went wrong is in the answer. */
export function run(command: string, args: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string; timeout?: number } = {}): Promise<Done> {
  return new Promise((resolve) => {
    const { input, ...rest } = options;
    const child = execFile(command, [...args], { timeout: PATIENCE, ...rest, maxBuffer: 64 << 20, encoding: 'utf8', windowsHide: true }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
      resolve({ code, error: typeof error?.code === 'string' ? error.code : undefined, stdout, stderr });
    });
    child.stdin?.on('error', () => undefined); // it ended without reading
    child.stdin?.end(input ?? '');
  });
}
