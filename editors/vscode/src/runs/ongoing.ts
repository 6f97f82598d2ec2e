// What runs at the moment, kept from the events that the server sends. Knows no VS Code.
import type { RunEventParams } from '../protocol';

export interface Ongoing {
  readonly runId: string;
  readonly uri: string;
  workflow: string;
  /** Steps that are done, and all that the workflow has; those of subworkflows don't count. */
  done: number;
  steps: number;
  costUsd: number;
}

const DONE = new Set(['step_finished', 'step_skipped']);

/** The runs that go on, the earliest first. */
export class OngoingRuns {
  readonly #runs = new Map<string, Ongoing>();

  get all(): readonly Ongoing[] {
    return [...this.#runs.values()];
  }

  /** Take an event in; returns whether there is something new to show. */
  take({ runId, uri, event }: RunEventParams): boolean {
    if (event.event === 'run_ended') return this.#runs.delete(runId);
    if (event.event === 'run_started') {
      this.#runs.set(runId, { runId, uri, workflow: event.workflow ?? runId, done: 0, steps: event.steps ?? 0, costUsd: 0 });
      return true;
    }
    const run = this.#runs.get(runId);
    if (run === undefined || !DONE.has(event.event) || event.step?.includes('.')) return false;
    run.done += 1;
    run.costUsd += event.cost_usd ?? 0;
    return true;
  }

  /** The server has gone: nothing is known any more. */
  clear(): void {
    this.#runs.clear();
  }
}
