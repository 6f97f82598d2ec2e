// A run in a line, as lists show it.
import type { Run } from '../protocol';
import { ago, money } from '../words';

export interface Described {
  readonly label: string;
  readonly description: string;
  /** Lines with all that is known. */
  readonly tooltip: string;
  /** The name of an icon. */
  readonly icon: string;
  readonly colour?: string;
  /** What can be done with it, for menus: words in a fixed order. */
  readonly context: string;
}

const LOOKS: Readonly<Record<string, readonly [icon: string, colour: string]>> = {
  success: ['pass', 'testing.iconPassed'],
  failed: ['error', 'testing.iconFailed'],
  timeout: ['watch', 'testing.iconFailed'],
  budget_exceeded: ['credit-card', 'testing.iconFailed'],
  paused: ['debug-pause', 'charts.yellow'],
  cancelled: ['circle-slash', 'disabledForeground'],
  interrupted: ['debug-disconnect', 'charts.orange'],
  refused: ['circle-slash', 'testing.iconFailed'],
};

const WORDS: Readonly<Record<string, string>> = { timeout: 'out of time', budget_exceeded: 'over budget' };

/** Return what is shown of a run; `now` in milliseconds. */
export function describe(run: Run, now: number): Described {
  const status = run.ongoing ? 'running' : (WORDS[run.status] ?? run.status);
  const [icon, colour] = run.ongoing ? ['loading~spin', undefined] : (LOOKS[run.status] ?? ['circle-outline', undefined]);
  const state = run.status === 'paused' && run.pausedStep !== null && !run.ongoing ? `waits at ${run.pausedStep}` : status;
  const steps = run.steps > 0 ? `${run.stepsDone} of ${run.steps} steps` : '';
  const when = run.updated ?? run.created;
  const time = when === null ? '' : ago(Date.parse(when), now);
  const tooltip = [
    `${run.workflow} ${run.runId}: ${state}`,
    [steps, money(run.costUsd)].filter(Boolean).join(', '),
    when === null ? '' : new Date(when).toLocaleString(),
    run.file ?? '',
    run.error ?? '',
  ];
  const can = [
    run.ongoing && 'ongoing',
    !run.ongoing && run.pausedStep !== null && 'paused',
    run.resumable && run.pausedStep === null && !run.ongoing && 'resumable',
    !run.ongoing && 'kept',
  ];
  return {
    label: run.workflow || run.runId,
    description: [state, run.ongoing ? steps : '', money(run.costUsd), time, run.runId.slice(0, 6)].filter(Boolean).join(' · '),
    tooltip: tooltip.filter(Boolean).join('\n'),
    icon,
    ...(colour === undefined ? {} : { colour }),
    context: ['run', ...can].filter(Boolean).join(' '),
  };
}
