// Beside the extensions for Python and YAML: the interpreter chosen there is used, the schema is handed over when that is wanted.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { scenario } = require('./scenario.cjs');

const TEXT = 'name: tickets\nsteps:\n  - id: one\n    type: llm_call\n    prompt: Hello\n    depends_on: [two]\n';
const { BARE_PYTHON, MODULE_PYTHON, NEIGHBOURS, VSCODE_EXTENSION } = process.env;
const extensions = [...NEIGHBOURS.split(path.delimiter), VSCODE_EXTENSION];
const files = { 'tickets.loom.yaml': TEXT, chosen: BARE_PYTHON, '.vscode/settings.json': '{}' };

scenario({ files, extensions }, async (editor, act) => {
  const { page } = editor;
  const offered = async (pattern) => JSON.parse(await editor.saved('offered.json', pattern));

  await act('the chosen interpreter has no agentloom', async () => {
    await editor.open('tickets.loom.yaml');
    await page.locator('.notification-toast').getByText(`nor in the environment of \`${BARE_PYTHON}\``).first().waitFor();
  });

  await act('another one is chosen, and has it', async () => {
    fs.writeFileSync(path.join(editor.folder, 'chosen'), MODULE_PYTHON);
    await page.locator('.squiggly-error').first().waitFor();
    await page.locator(`.statusbar-item[id="agentloom.agentloom.agentloom"][aria-label*="${MODULE_PYTHON}"]`).waitFor();
  });

  await act('no schema is handed over unless that is wanted', async () => {
    const before = await offered(/"offered"/);
    assert.deepEqual(before.offered.map((one) => one.uri), [null, null, null]);
    editor.write('.vscode/settings.json', JSON.stringify({ 'agentloom.yaml.schema': true }));
    const after = await offered(/agentloom:\/\/schema\/workflow/);
    assert.deepEqual(after.offered.map((one) => one.uri), ['agentloom://schema/workflow', 'agentloom://schema/agent', null]);
    assert.match(after.offered[0].title, /workflow/i);
  });
});
