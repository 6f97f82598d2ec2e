// The server's commands, asked for without the thing that they are about: by the palette, a menu of the editor, the tree of runs.
import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';
import { asArgument, type CommandArgument } from './arguments';
import type { RunsSource } from './source';
import { describe } from './describe';

const OF_A_FILE = new Set(['agentloom.run', 'agentloom.runWithMock', 'agentloom.replay']);
const OF_A_RUN = new Set(['agentloom.resume', 'agentloom.approve', 'agentloom.reject', 'agentloom.showRun', 'agentloom.cancel']);
const STARTS = new Set([...OF_A_FILE, 'agentloom.resume', 'agentloom.approve', 'agentloom.reject']);

/** What the client hands commands of the server to before it sends them. */
export function middleware(source: RunsSource, show: (runId: string, folder?: string) => Promise<void>): Middleware {
  return {
    provideCodeLenses: async (document, token, next) => (await next(document, token))?.map(withIcon) ?? null,
    executeCommand: async (command, given, next): Promise<unknown> => {
      if (STARTS.has(command) && !(await trusted())) return undefined;
      let argument: CommandArgument | undefined = asArgument(given as readonly unknown[]);
      if (OF_A_FILE.has(command) && argument.uri === undefined) {
        const uri = vscode.window.activeTextEditor?.document.uri;
        argument = uri === undefined ? argument : { ...argument, uri: uri.toString() };
      }
      if (OF_A_RUN.has(command) && argument.runId === undefined && argument.uri === undefined) {
        argument = await choose(command, source);
        if (argument === undefined) return undefined;
      }
      if (command === 'agentloom.showRun' && argument.runId !== undefined) return show(argument.runId, argument.folder);
      return next(command, Object.keys(argument).length === 0 ? given : [argument]);
    },
  };
}

/** The sign of resuming is missing in many fonts; VS Code has one of its own. */
function withIcon(lens: vscode.CodeLens): vscode.CodeLens {
  if (lens.command !== undefined) lens.command = { ...lens.command, title: lens.command.title.replace(/^⏵ /, '$(debug-continue)\u00a0') };
  return lens;
}

async function trusted(): Promise<boolean> {
  if (vscode.workspace.isTrusted) return true;
  const manage = 'Manage Workspace Trust';
  const chosen = await vscode.window.showWarningMessage('Workflows run programs and send data. They run only in workspaces that you trust.', manage);
  if (chosen === manage) await vscode.commands.executeCommand('workbench.trust.manage');
  return false;
}

const ASKED: Readonly<Record<string, { readonly title: string; readonly none: string }>> = {
  'agentloom.resume': { title: 'Resume which run?', none: 'No run of this workspace can go on.' },
  'agentloom.approve': { title: 'Approve which run?', none: 'No run waits at a gate.' },
  'agentloom.reject': { title: 'Reject which run?', none: 'No run waits at a gate.' },
  'agentloom.cancel': { title: 'Cancel which run?', none: 'Nothing runs.' },
  'agentloom.showRun': { title: 'Show which run?', none: 'No run of this workspace was kept.' },
};

async function choose(command: string, source: RunsSource): Promise<CommandArgument | undefined> {
  const { title, none } = ASKED[command] ?? { title: '', none: '' };
  const runs = (await source.list()).filter((run) => {
    if (command === 'agentloom.cancel') return run.ongoing;
    if (command === 'agentloom.resume') return run.resumable && run.pausedStep === null;
    return command === 'agentloom.showRun' || (run.pausedStep !== null && !run.ongoing);
  });
  const [first] = runs;
  if (first === undefined) {
    void vscode.window.showInformationMessage(none);
    return undefined;
  }
  if (command === 'agentloom.cancel' && runs.length === 1) return { runId: first.runId };
  const items = runs.map((run) => {
    const { label, description, tooltip } = describe(run, Date.now());
    return { label, description, detail: tooltip.split('\n')[0] ?? '', run };
  });
  const chosen = await vscode.window.showQuickPick(items, { title, matchOnDescription: true });
  return chosen && { runId: chosen.run.runId, folder: chosen.run.folder, ...(chosen.run.uri === null ? {} : { uri: chosen.run.uri }) };
}
