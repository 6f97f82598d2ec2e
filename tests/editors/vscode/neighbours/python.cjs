// The environments of the Python extension: https://github.com/microsoft/vscode-python/wiki/Python-Environment-APIs. The chosen interpreter
// stands in the file `chosen` of the folder that is open.

const fs = require('node:fs');
const path = require('node:path');
const vscode = require('vscode');

exports.activate = () => {
  const changed = new vscode.EventEmitter();
  const folder = vscode.workspace.workspaceFolders[0].uri.fsPath;
  const file = path.join(folder, 'chosen');
  const chosen = () => fs.readFileSync(file, 'utf8').trim();
  fs.watchFile(file, { interval: 100 }, () => changed.fire({ id: chosen(), path: chosen(), resource: undefined }));
  const environment = (program) => ({ id: program, path: program, executable: { uri: vscode.Uri.file(program), bitness: undefined, sysPrefix: undefined } });
  return {
    environments: {
      known: [],
      onDidChangeActiveEnvironmentPath: changed.event,
      getActiveEnvironmentPath: () => ({ id: chosen(), path: chosen() }),
      resolveEnvironment: async ({ path: program }) => (fs.existsSync(program) ? environment(program) : undefined),
    },
  };
};
