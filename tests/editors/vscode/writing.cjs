// A workflow is written: a mistake is seen and cured, a template completed, a step renamed, a code explained.

const assert = require('node:assert/strict');
const { scenario, Editor } = require('./scenario.cjs');

const TEXT = `\
name: tickets
config:
  provider: mock
state:
  ticket: My invoice is wrong
steps:
  - id: classify
    type: llm_call
    prompt: "One word for {state.ticket}"
    output: category

  - id: route
    type: router
    depends_on: [classify]
    conditions:
      - expression: "'billing' in state.category"
        target: biling_reply
    default: other_reply

  - id: billing_reply
    type: llm_call
    depends_on: [route]
    prompt: "Answer a question of {state."
    output: reply

  - id: other_reply
    type: llm_call
    depends_on: [route]
    prompt: "Answer {state.ticket}"
    output: reply
`;
const SERVICE = 'kind: Service\nspec:\n  ports:\n    - colour: blue\n';

scenario({ files: { 'tickets.loom.yaml': TEXT, 'service.yaml': SERVICE } }, async (editor, act) => {
  const { page } = editor;
  const squiggles = page.locator('.squiggly-error');

  await act('the server is there', async () => {
    await editor.open('tickets.loom.yaml');
    await page.locator('.statusbar-item[id="agentloom.agentloom.agentloom"]').getByText('agentloom').waitFor();
    await editor.lines().getByText('layer 1').waitFor();
  });

  await act('a misspelt step is underlined and told', async () => {
    await squiggles.first().waitFor();
    await editor.goTo(...Editor.place(TEXT, 'biling_reply', 3));
    await editor.command('Show or Focus Hover');
    await page.locator('.monaco-hover').getByText('did you mean `billing_reply`?').first().waitFor();
    await page.locator('.monaco-hover').getByText('AL207').first().waitFor();
  });

  await act('its quick fix is applied', async () => {
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+.');
    await page.locator('.action-widget').getByText('change to `billing_reply`').first().waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.action-widget').waitFor({ state: 'hidden' });
    await editor.saved('tickets.loom.yaml', /target: billing_reply\n/);
  });

  await act('a template is completed while it is typed', async () => {
    await editor.goTo(...Editor.place(TEXT, 'question of {state.', 'question of {state.'.length));
    await page.keyboard.type('cat');
    await page.locator('.suggest-widget .monaco-list-row.focused').getByText('category').first().waitFor();
    await page.keyboard.press('Enter');
    await editor.saved('tickets.loom.yaml', /question of \{state\.category\}"/);
    await squiggles.first().waitFor({ state: 'detached' });
  });

  await act('a step is renamed everywhere', async () => {
    await editor.goTo(...Editor.place(TEXT, 'id: classify', 6));
    await page.keyboard.press('F2');
    await page.locator('.rename-box input:focus').waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('sort_ticket');
    await page.keyboard.press('Enter');
    await editor.lines().getByText('sort_ticket').nth(1).waitFor();
    const saved = await editor.saved('tickets.loom.yaml', /- id: sort_ticket\n/);
    assert.match(saved, /depends_on: \[sort_ticket\]/);
    assert.doesNotMatch(saved, /classify/);
  });

  await act('the second line of a step begins below the first', async () => {
    await page.keyboard.press('Control+End');
    await page.keyboard.type('\n  - id: last');
    await squiggles.first().waitFor(); // it has no type yet; by now VS Code has coloured the line, without which Enter knows no rules
    await page.keyboard.type('\ntype: llm_call');
    await editor.saved('tickets.loom.yaml', / {2}- id: last\n {4}type: llm_call\n*$/);
  });

  await act('another YAML file is left alone', async () => {
    await editor.open('service.yaml');
    await editor.goTo(4, 7);
    await page.keyboard.type('x: [');
    await editor.open('tickets.loom.yaml'); // that its mistake shows means that the server has seen the other file
    await squiggles.first().waitFor();
    await editor.open('service.yaml');
    await editor.lines().getByText('x: [').waitFor();
    assert.equal(await squiggles.count(), 0);
  });

  await act('a code of the file is explained', async () => {
    await editor.open('tickets.loom.yaml');
    await editor.command('agentloom: Explain a Code…');
    await page.locator('.quick-input-list').getByText('In this file').waitFor();
    await editor.chosen('AL109').waitFor(); // the last step has no prompt
    await page.keyboard.press('Enter');
    await page.locator('.view-lines').getByText('AL109 field-conflict').waitFor();
  });
});
