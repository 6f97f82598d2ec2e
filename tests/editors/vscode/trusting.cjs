// A folder from a stranger: its workflows are checked, and nothing of it runs until the user trusts it.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { scenario } = require('./scenario.cjs');

const files = {
  'tickets.loom.yaml': 'name: tickets\nconfig:\n  provider: mock\nsteps:\n  - id: one\n    type: tool\n    tool_name: stranger\n',
  'agentloom.toml': 'tools = ["stranger"]\n',
  'stranger.py': 'import pathlib\npathlib.Path(__file__).with_name("imported").touch()\n\nfrom agentloom import tool\n\n@tool\ndef stranger() -> str:\n    return "hello"\n',
  '.vscode/settings.json': JSON.stringify({ 'agentloom.server.path': './evil', 'agentloom.tools.learn': true }),
  evil: '#!/bin/sh\ntouch "$(dirname "$0")/started"\n',
};
const settings = { 'security.workspace.trust.startupPrompt': 'never', 'security.workspace.trust.banner': 'never' };

scenario({ files, settings, trusted: false }, async (editor, act) => {
  const { page } = editor;
  const there = (name) => fs.existsSync(path.join(editor.folder, name));
  fs.chmodSync(path.join(editor.folder, 'evil'), 0o755);

  await act('the workflow is checked, and nothing of the folder has run', async () => {
    await page.locator('.statusbar-item').getByText('Restricted Mode').waitFor();
    await editor.open('tickets.loom.yaml');
    await editor.lines().getByText(/layer.1/).first().waitFor();
    assert.equal(there('imported'), false);
    assert.equal(there('started'), false);
  });

  await act('a run asks for trust', async () => {
    await page.locator('.codelens-decoration a').filter({ hasText: 'Run with mock' }).first().click();
    await page.locator('.notification-toast').getByText('They run only in workspaces that you trust').waitFor();
    assert.equal(there('.agentloom'), false);
    assert.equal(there('imported'), false);
  });

  await act('once it is trusted, its settings and modules count', async () => {
    await page.locator('.notification-toast').getByText('Manage Workspace Trust').click();
    await page.locator('.workspace-trust-editor').getByRole('button', { name: 'Trust', exact: true }).first().click();
    await editor.until(() => there('started'), 'the program was started');
    editor.write('.vscode/settings.json', '{}');
    await editor.until(() => there('imported'), 'the module was imported');
  });
});
