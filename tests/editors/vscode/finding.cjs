// agentloom isn't where it is looked for: that is said in plain words, and a way out leads to a server that runs.

const fs = require('node:fs');
const path = require('node:path');
const { scenario } = require('./scenario.cjs');

const TEXT = 'name: tickets\nsteps:\n  - id: one\n    type: llm_call\n    prompt: Hello\n    depends_on: [two]\n';
const real = process.env.AGENTLOOM; // a program that the PATH doesn't have

scenario({ files: { 'tickets.loom.yaml': TEXT, '.vscode/settings.json': '{}' } }, async (editor, act) => {
  const { page } = editor;
  const toast = (words) => page.locator('.notification-toast').getByText(words).first();
  const set = (settings) => editor.write('.vscode/settings.json', JSON.stringify(settings));
  const program = (name, text) => {
    const file = path.join(editor.work, name);
    fs.writeFileSync(file, text, { mode: 0o755 });
    return file;
  };

  await act('nothing is installed', async () => {
    await editor.open('tickets.loom.yaml');
    await toast('agentloom is not installed: it is not on the search path').waitFor();
    await page.locator('.notification-toast').getByText('Install…').waitFor();
    await page.locator('.statusbar-item.has-background-color[id="agentloom.agentloom.agentloom"]').waitFor();
  });

  await act('an installation asks for the place', async () => {
    await page.locator('.notification-toast').getByText('Install…').click();
    await page.locator('.quick-input-list').getByText('Create .venv in this folder').waitFor();
    await page.keyboard.press('Escape');
  });

  await act('the setting names nothing', async () => {
    set({ 'agentloom.server.path': '/nowhere/agentloom' });
    await toast('There is no program').waitFor();
    await toast('/nowhere/agentloom').waitFor();
  });

  await act('it is too old', async () => {
    set({ 'agentloom.server.path': program('old', '#!/bin/sh\necho "agentloom, version 0.4.0"\n') });
    await toast('agentloom 0.4.0').waitFor();
    await page.locator('.notification-toast').getByText('Update…').waitFor();
    await toast('is too old for this extension, which needs 0.6.0 or later').waitFor();
  });

  await act('the interpreter has no agentloom', async () => {
    set({ 'agentloom.interpreter': process.env.BARE_PYTHON });
    await toast('agentloom is not installed for').waitFor();
  });

  await act('the right program is named, and checks', async () => {
    set({ 'agentloom.server.path': real });
    await page.locator('.squiggly-error').first().waitFor();
    await page.locator('.statusbar-item:not(.has-background-color)[id="agentloom.agentloom.agentloom"]').waitFor();
  });

  await act('an environment of the folder is found', async () => {
    const python = editor.write('.venv/bin/python', fs.readFileSync(process.env.MODULE_PYTHON, 'utf8'));
    fs.chmodSync(python, 0o755);
    set({});
    await page.locator(`.statusbar-item[id="agentloom.agentloom.agentloom"][aria-label*=".venv/bin/python"]`).waitFor();
    await page.locator('.squiggly-error').first().waitFor();
  });
});
