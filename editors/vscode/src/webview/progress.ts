// How steps go, by their paths: from the drawing at first, then event by event.
import type { Drawing, Graph, RunEvent } from '../protocol';
import { allNodes } from '../graph/places';
import { duration, money } from '../words';

export interface Going {
  readonly status: string;
  readonly durationMs: number;
  readonly costUsd: number;
  readonly error: string | null;
  /** When it began, in milliseconds; of a step that is running. */
  readonly since?: number;
  /** Attempts that failed. */
  readonly failed?: number;
}

export interface Summary {
  readonly running: boolean;
  readonly done: number;
  readonly steps: number;
  readonly costUsd: number;
  readonly status: string;
}

export class Progress {
  readonly steps = new Map<string, Going>();
  #summary: Summary | undefined;
  #run: string | undefined;

  get summary(): Summary | undefined {
    return this.#summary;
  }

  /** Begin with what a drawing tells of the last run. A run that goes on is known better from its events. */
  read(drawing: Drawing, run: Graph['run']): void {
    if (run?.runId === this.#run && this.#summary?.running && run?.status === 'running') return;
    if (run?.runId !== this.#run) this.steps.clear(); // else steps of files below, of which the drawing knows nothing, stay
    this.#run = run?.runId;
    for (const node of allNodes(drawing)) {
      if (node.run === null) this.steps.delete(node.path);
      else this.steps.set(node.path, node.run);
    }
    if (run === null) {
      this.#summary = undefined;
      return;
    }
    const own = drawing.nodes.flatMap((node) => node.run ?? []);
    const done = own.filter((one) => one.status !== 'running').length;
    const costUsd = own.reduce((sum, one) => sum + one.costUsd, 0);
    this.#summary = { running: run.status === 'running', done, steps: drawing.nodes.length, costUsd, status: run.status };
  }

  /** Take an event in; returns the path of the step that it is about, or `*` when all may have changed. */
  take(event: RunEvent, now: number): string {
    const step = event.step ?? '';
    switch (event.event) {
      case 'run_started':
        this.#run = event.run_id;
        this.steps.clear();
        this.#summary = { running: true, done: 0, steps: event.steps ?? 0, costUsd: 0, status: 'running' };
        return '*';
      case 'step_started':
        this.steps.set(step, { status: 'running', durationMs: 0, costUsd: 0, error: null, since: now });
        return step;
      case 'step_retrying':
        this.steps.set(step, { status: 'running', durationMs: 0, costUsd: 0, since: now, ...this.steps.get(step), error: event.error ?? null, failed: event.attempt ?? 1 });
        return step;
      case 'step_finished':
      case 'step_skipped':
        this.steps.set(step, {
          status: event.event === 'step_skipped' ? 'skipped' : (event.status ?? 'success'),
          durationMs: event.duration_ms ?? 0,
          costUsd: event.cost_usd ?? 0,
          error: event.error ?? null,
        });
        if (this.#summary !== undefined && !step.includes('.')) {
          this.#summary = { ...this.#summary, done: this.#summary.done + 1, costUsd: this.#summary.costUsd + (event.cost_usd ?? 0) };
        }
        return step;
      case 'run_ended':
        for (const [path, going] of this.steps) {
          if (going.status === 'running') this.steps.set(path, { ...going, status: 'cancelled' });
        }
        if (this.#summary !== undefined) this.#summary = { ...this.#summary, running: false, status: event.status ?? 'failed' };
        return '*';
      default:
        return '';
    }
  }
}

/** What stands below a step's box: how long, how much. */
export function caption(going: Going, now: number): string {
  if (going.status === 'skipped') return 'skipped';
  if (going.status === 'running') {
    const retries = going.failed ? `, attempt ${going.failed + 1}` : '';
    return `${duration(Math.max(0, now - (going.since ?? now)))}${retries}`;
  }
  if (going.status === 'paused') return 'waits';
  const words = [going.durationMs >= 1 ? duration(going.durationMs) : '', going.costUsd > 0 ? money(going.costUsd) : ''].filter(Boolean);
  return words.length > 0 || going.status === 'success' ? words.join(' · ') : going.status.replaceAll('_', ' ');
}

/** A run in a line. */
export function told(summary: Summary): string {
  const cost = summary.costUsd > 0 ? ` · ${money(summary.costUsd)}` : '';
  if (summary.running) return `step ${Math.min(summary.done + 1, Math.max(1, summary.steps))} of ${summary.steps}${cost}`;
  return `${summary.status.replaceAll('_', ' ')}${cost}`;
}
