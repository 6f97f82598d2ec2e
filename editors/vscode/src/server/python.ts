// The interpreter that the Python extension has chosen, where that extension is installed.
import * as vscode from 'vscode';

interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(path: { readonly path: string }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
    readonly known: readonly { readonly path: string; readonly executable: { readonly uri?: vscode.Uri } }[];
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

async function api(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>('ms-python.python');
  if (extension === undefined) return undefined;
  try {
    return await extension.activate();
  } catch {
    return undefined; // its own trouble, which it tells itself
  }
}

/** Return the path of the chosen interpreter; undefined without the extension or a choice. */
export async function chosenInterpreter(resource: vscode.Uri | undefined): Promise<string | undefined> {
  const python = await api();
  if (python === undefined) return undefined;
  const active = python.environments.getActiveEnvironmentPath(resource);
  const environment = await python.environments.resolveEnvironment(active);
  return environment?.executable.uri?.fsPath;
}

/** Return the interpreters that the extension knows. */
export async function knownInterpreters(): Promise<string[]> {
  const python = await api();
  return (python?.environments.known ?? []).flatMap((one) => one.executable.uri?.fsPath ?? []);
}

/** Call back when another interpreter is chosen. */
export async function onInterpreterChange(listener: () => void): Promise<vscode.Disposable | undefined> {
  return (await api())?.environments.onDidChangeActiveEnvironmentPath(listener);
}
