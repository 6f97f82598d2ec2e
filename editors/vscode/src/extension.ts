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

const LOOKED_AT_BY_START = ['agentloom.server', 'agentloom.interpreter'];

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel('agentloom', { log: true });
  const trace = vscode.window.createOutputChannel('agentloom (protocol)', { log: true });
  const status = new StatusItem();
  const documents = new Documents();
  const running = new Server(log, trace, {});
  server = running;
  let told = '';
  context.subscriptions.push(
    log,
    trace,
    status,
    documents,
    running,
    running.onChange((standing) => {
      status.stands(standing);
      void vscode.commands.executeCommand('setContext', 'agentloom.running', standing.state === 'running');
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
  );
  registerCommands(context, { server: running, documents, log });
  void onInterpreterChange(() => void running.restart()).then((one) => one && context.subscriptions.push(one));
  void contributeSchema(context);
  await running.restart();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
