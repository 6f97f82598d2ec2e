// What Enter does in a workflow. The YAML language of VS Code knows nothing of list items, so the second line of a step begins too far left.
import * as vscode from 'vscode';

/** Enter behind the first key of a list item goes below that key. The YAML extension has rules of its own, which are left alone. */
export function typingRules(): vscode.Disposable {
  if (vscode.extensions.getExtension('redhat.vscode-yaml') !== undefined) return new vscode.Disposable(() => undefined);
  return vscode.languages.setLanguageConfiguration('yaml', {
    onEnterRules: [
      {
        beforeText: /^\s*- [\w-]+:\s+[^\s|>&#].*$/,
        action: { indentAction: vscode.IndentAction.None, appendText: '  ' },
      },
    ],
  });
}
