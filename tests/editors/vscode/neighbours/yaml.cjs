// What Red Hat's YAML extension lets others contribute (registerContributor). It writes what it was offered for a few files to `offered.json` in the folder
// that is open, whenever the setting of ours changes.

const fs = require('node:fs');
const path = require('node:path');
const vscode = require('vscode');

exports.activate = () => {
  const folder = vscode.workspace.workspaceFolders[0].uri;
  return {
    registerContributor(schema, uriOf, contentOf) {
      const write = () => {
        const offered = ['a.loom.yaml', 'b.agent.yaml', 'service.yaml'].map((name) => {
          const uri = uriOf(vscode.Uri.joinPath(folder, name).toString());
          return { name, uri: uri ?? null, title: uri === undefined ? null : JSON.parse(contentOf(uri)).title ?? '' };
        });
        fs.writeFileSync(path.join(folder.fsPath, 'offered.json'), JSON.stringify({ schema, offered }));
      };
      vscode.workspace.onDidChangeConfiguration(write);
      write();
      return true;
    },
  };
};
