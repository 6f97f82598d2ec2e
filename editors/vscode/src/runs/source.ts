// The runs of the workspace, as the server knows them.
import type { Run, RunDetails, Runs } from '../protocol';
import type { Server } from '../server/server';

export class RunsSource {
  constructor(private readonly server: () => Server | undefined) {}

  /** The runs, the latest first; none while there is no server. */
  async list(): Promise<readonly Run[]> {
    const client = this.server()?.client;
    return client === undefined ? [] : (await client.sendRequest<Runs>('agentloom/runs', {})).runs;
  }

  /** All about one run; undefined where it isn't known. */
  async details(runId: string, folder?: string): Promise<RunDetails | undefined> {
    const client = this.server()?.client;
    const found = await client?.sendRequest<RunDetails | null>('agentloom/run', { runId, ...(folder === undefined ? {} : { folder }) });
    return found ?? undefined;
  }
}
