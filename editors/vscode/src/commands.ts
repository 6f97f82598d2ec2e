// What the palette offers.
import * as vscode from 'vscode';
import type { Documents } from './documents';
import { explainCode } from './explain';
import { chooseInterpreter, install } from './install';
import { newWorkflow } from './newWorkflow';
import type { Server } from './server/server';
import type { GraphPanels } from './graph/panels';
import { asArgument } from './runs/arguments';
import { compareRuns, showJson } from './runs/show';
import type { RunsSource } from './runs/source';
import type { RunItem, RunsTree } from './runs/tree';

export interface Parts {
  readonly server: Server;
  readonly documents: Documents;
  readonly log: vscode.LogOutputChannel;
  readonly graphs: GraphPanels;
  readonly source: RunsSource;
  readonly tree: RunsTree;
}

export function registerCommands(context: vscode.ExtensionContext, { server, documents, log, graphs, source, tree }: Parts): void {
  const commands: Record<string, (...given: never[]) => unknown> = {
    'agentloom.restartServer': () => server.restart(),
    'agentloom.showLog': () => {
      log.show(true);
    },
    'agentloom.showVersions': async () => {
      const done = await server.command(['info']);
      await documents.show('versions.txt', done?.stdout ?? 'agentloom was not found.\n');
    },
    'agentloom.explainCode': (code?: string) => explainCode(server, documents, typeof code === 'string' ? code : undefined),
    'agentloom.newWorkflow': newWorkflow,
    'agentloom.chooseInterpreter': chooseInterpreter,
    'agentloom.installServer': async () => {
      if (await install(log)) await server.restart();
    },
    'agentloom.showGraph': (...given: unknown[]) => {
      const uri = asArgument(given).uri ?? vscode.window.activeTextEditor?.document.uri.toString();
      if (uri === undefined) void vscode.window.showInformationMessage('Open a workflow first.');
      else graphs.show(vscode.Uri.parse(uri));
    },
    'agentloom.refreshRuns': () => {
      tree.refresh();
    },
    'agentloom.showRunAsJson': (item?: RunItem) => item && showJson(source, documents, item.run.runId, item.run.folder),
    'agentloom.compareRuns': (_?: RunItem, chosen?: readonly RunItem[]) => compareRuns(source, documents, (chosen ?? tree.view.selection).map((one) => one.run)),
    'agentloom.openWorkflowOfRun': async (item?: RunItem) => {
      if (item?.run.uri) await vscode.window.showTextDocument(vscode.Uri.parse(item.run.uri));
    },
    'agentloom.menu': menu,
  };
  for (const [name, act] of Object.entries(commands)) {
    context.subscriptions.push(vscode.commands.registerCommand(name, act));
  }
}

/** The menu behind the status bar item. */
async function menu(): Promise<void> {
  const entries = [
    ['$(refresh) Restart the language server', 'agentloom.restartServer'],
    ['$(output) Show the log', 'agentloom.showLog'],
    ['$(info) Show versions and keys', 'agentloom.showVersions'],
    ['$(snake) Choose interpreter…', 'agentloom.chooseInterpreter'],
    ['$(gear) Open settings', 'agentloom.openSettings'],
  ] as const;
  const chosen = await vscode.window.showQuickPick(entries.map(([label, command]) => ({ label, command })), { title: 'agentloom' });
  if (chosen?.command === 'agentloom.openSettings') await vscode.commands.executeCommand('workbench.action.openSettings', '@ext:agentloom.agentloom');
  else if (chosen !== undefined) await vscode.commands.executeCommand(chosen.command);
}
