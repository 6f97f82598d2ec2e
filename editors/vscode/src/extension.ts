// The extension: windows around the language server. What the editor knows of workflows, it knows from there.
import * as vscode from 'vscode';
import { registerCommands } from './commands';
import { Documents } from './documents';
import { offer } from './install';
import { onInterpreterChange } from './server/python';
import { Server } from './server/server';
import { StatusItem } from './status';
import { contributeSchema } from './redhat';
import { typingRules } from './typing';
import { watchActiveFile } from './context';
import { GraphPanels } from './graph/panels';
import type { RunEventParams } from './protocol';
import { middleware } from './runs/middleware';
import { OngoingRuns } from './runs/ongoing';
import { showRun } from './runs/show';
import { RunsSource } from './runs/source';
import { RunsTree } from './runs/tree';
import type { StaticFeature } from 'vscode-languageclient/node';

const LOOKED_AT_BY_START = ['agentloom.server', 'agentloom.interpreter'];

let server: Server | undefined;

/** Tells the server that events of runs are welcome. */
const wantsRunEvents: StaticFeature = {
  fillClientCapabilities: (capabilities) => {
    capabilities.experimental = { agentloom: { runEvents: true } };
  },
  initialize: () => undefined,
  getState: () => ({ kind: 'static' }),
  clear: () => undefined,
};

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel('agentloom', { log: true });
  const trace = vscode.window.createOutputChannel('agentloom (protocol)', { log: true });
  const status = new StatusItem();
  const documents = new Documents();
  const source = new RunsSource(() => server);
  const show = (runId: string, folder?: string) => showRun(source, documents, runId, folder);
  const running = new Server(log, trace, middleware(source, show));
  server = running;
  const graphs = new GraphPanels(running, context.extensionUri);
  const tree = new RunsTree(source);
  const ongoing = new OngoingRuns();
  const kept = vscode.workspace.createFileSystemWatcher('**/.agentloom/checkpoints/*');
  const refresh = () => {
    tree.refresh();
  };
  let told = '';
  context.subscriptions.push(
    log, trace, status, documents, running, graphs, tree, kept,
    kept.onDidCreate(refresh), kept.onDidChange(refresh), kept.onDidDelete(refresh),
    running.onConnect((client) => {
      client.registerFeature(wantsRunEvents);
      client.onNotification('agentloom/runEvent', (params: RunEventParams) => {
        graphs.take(params);
        if (!ongoing.take(params)) return;
        status.runs(ongoing.all);
        refresh();
      });
    }),
    running.onChange((standing) => {
      status.stands(standing);
      void vscode.commands.executeCommand('setContext', 'agentloom.running', standing.state === 'running');
      if (standing.state !== 'running') {
        ongoing.clear();
        status.runs([]);
      }
      refresh();
      if (standing.state === 'running') told = '';
      if (standing.state !== 'missing' || standing.words === told) return;
      told = standing.words;
      void offer(standing.words, standing.old);
    }),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (LOOKED_AT_BY_START.some((name) => change.affectsConfiguration(name))) void running.restart();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void running.restart()),
    typingRules(),
    watchActiveFile(running),
  );
  registerCommands(context, { server: running, documents, log, graphs, source, tree });
  void onInterpreterChange(() => void running.restart()).then((one) => one && context.subscriptions.push(one));
  void contributeSchema(context);
  await running.restart();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
