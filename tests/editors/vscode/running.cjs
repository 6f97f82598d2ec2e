// Runs from the editor: started by a lens, watched, cancelled, resumed, decided at a gate, looked at and compared afterwards.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { scenario } = require('./scenario.cjs');

const TEXT = `\
name: publish
config:
  provider: mock
  responses_file: recordings/publish.json
  latency_model: replay
steps:
  - id: draft
    type: llm_call
    prompt: Write something
    output: draft

  - id: check
    type: llm_call
    depends_on: [draft]
    prompt: "Is this good? {state.draft}"
    output: verdict

  - id: ok
    type: approval_gate
    depends_on: [check]

  - id: send
    type: llm_call
    depends_on: [ok]
    prompt: "Announce {state.draft}"
    output: sent
`;

function recording(patience, draft = 'A draft worth reading') {
  const reply = (content, latency) => ({ content, model: 'gpt-4o-mini', usage: { prompt_tokens: 60, completion_tokens: 20, total_tokens: 80 }, cost_usd: 0.0012, latency_ms: latency });
  return JSON.stringify({ _version: 2, draft: reply(draft, 120), check: reply('Quite good', patience), send: reply('It is out', 60) });
}

const REAL = 'name: real\nconfig:\n  provider: openai\nsteps:\n  - id: ask\n    type: llm_call\n    prompt: Hello\n';
const BROKEN = 'name: broken\nconfig:\n  provider: mock\nsteps:\n  - id: load\n    type: tool\n    tool_name: file_read\n    tool_args: { path: nothing-here.txt }\n    retry: { max_retries: 0 }\n';
const GATE = 'name: question\nconfig:\n  provider: mock\nsteps:\n  - id: sure\n    type: approval_gate\n\n  - id: tell\n    type: llm_call\n    depends_on: [sure]\n    prompt: Hello\n';
const files = { 'real.loom.yaml': REAL, 'question.loom.yaml': GATE, 'broken.loom.yaml': BROKEN, 'publish.loom.yaml': TEXT, 'recordings/publish.json': recording(600_000) };

scenario({ files, environment: { OPENAI_API_KEY: '' }, size: { width: 1400, height: 800 } }, async (editor, act) => {
  const { page } = editor;
  const lens = (words) => page.locator('.codelens-decoration a').filter({ hasText: words }).first();
  const status = page.locator('.statusbar-item[id="agentloom.agentloom.agentloom"]');
  const hints = (words) => editor.lines().getByText(words).first();

  await act('a lens starts a run', async () => {
    await editor.open('publish.loom.yaml');
    await lens('Run with mock').click();
    await status.getByText('step 2/4').waitFor(); // the first is done, the second takes ten minutes
    await page.locator('.statusbar-item').getByText('Running publish: step 2 of 4: check · $0.0012').waitFor();
  });

  await act('the graph shows how far it is', async () => {
    await editor.command('agentloom: Show Graph');
    const graph = editor.graph();
    await graph.locator('g.step[data-id="draft"][data-status="success"]').waitFor();
    await graph.locator('g.step[data-id="check"][data-status="running"]').waitFor();
    await graph.locator('#run').getByText('step 2 of 4 · $0.0012').waitFor();
    assert.match(await graph.locator('g.step[data-id="draft"]').getAttribute('aria-label'), /^draft, llm_call, layer 1, on the critical path, success 1\d\d ms · \$0\.0012$/);
  });

  await act('its progress has a button that cancels it', async () => {
    await page.locator('.statusbar-item').getByText('Running publish').click();
    await page.locator('.notifications-center').getByText('Cancel').click();
    await lens('Resume').waitFor();
    await status.getByText(/^ *agentloom *$/).waitFor();
    await editor.graph().locator('#run').getByText('cancelled').waitFor();
  });

  await act('a lens resumes it up to the gate', async () => {
    editor.write('recordings/publish.json', recording(300));
    await lens('Resume').click();
    await lens('✓ Approve').waitFor();
    await editor.graph().locator('g.step[data-id="ok"][data-status="paused"]').waitFor();
    assert.equal(await lens('Resume').count(), 0);
  });

  await act('a lens approves, and hints tell how it went', async () => {
    await lens('✓ Approve').click();
    await editor.graph().locator('g.step[data-id="send"][data-status="success"]').waitFor();
    await hints(/✓.*0\.0012/).waitFor();
    await lens('✓ Approve').waitFor({ state: 'detached' });
  });

  await act('the view of runs lists it', async () => {
    await page.locator('.activitybar').getByRole('tab', { name: 'agentloom' }).click();
    const row = page.locator('.pane-body .monaco-list-row').filter({ hasText: 'publish' });
    await row.filter({ hasText: 'success' }).first().waitFor();
    assert.equal(await row.count(), 1);
  });

  await act('what came of it is a page', async () => {
    await page.locator('.pane-body .monaco-list-row').filter({ hasText: 'publish' }).first().click();
    const preview = page.frameLocator('iframe.webview:visible').last().frameLocator('#active-frame');
    await preview.getByText('A draft worth reading').first().waitFor();
  });

  await act('a second run waits at the gate, and the view of runs approves it', async () => {
    editor.write('recordings/publish.json', recording(60, 'Another draft'));
    await page.locator('.tab').getByText('publish.loom.yaml').click();
    await editor.command('agentloom: Run with Mock');
    const row = page.locator('.pane-body .monaco-list-row').filter({ hasText: 'waits at ok' });
    await row.waitFor();
    await row.hover();
    await row.locator('.action-label[aria-label^="Approve"]').click();
    await row.waitFor({ state: 'detached' });
    await page.locator('.pane-body .monaco-list-row').filter({ hasText: 'success' }).nth(1).waitFor();
  });

  await act('two runs are compared', async () => {
    await editor.command('agentloom: Compare Two Runs…');
    await page.locator('.quick-input-title').getByText('Compare which run…').waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.quick-input-title').getByText('… with which?').waitFor();
    await page.keyboard.press('Enter');
    const diff = page.locator('.monaco-diff-editor');
    await diff.locator('.original').getByText('A draft worth reading').first().waitFor();
    await diff.locator('.modified').getByText('Another draft').first().waitFor();
  });

  await act('two go on at once: one is rejected, the other cancelled', async () => {
    const rows = (workflow, words) => page.locator('.pane-body .monaco-list-row').filter({ hasText: workflow }).filter({ hasText: words });
    editor.write('recordings/publish.json', recording(600_000));
    await editor.open('publish.loom.yaml');
    await lens('Run with mock').click();
    await rows('publish', 'running · 1 of 4 steps').waitFor();
    await editor.open('question.loom.yaml');
    await lens('Run with mock').click();
    await rows('question', 'waits at sure').waitFor();
    await lens('✗ Reject').click();
    await rows('question', 'waits at sure').waitFor({ state: 'detached' });
    await lens('✗ Reject').waitFor({ state: 'detached' });
    const kept = path.join('.agentloom', 'checkpoints');
    const texts = fs.readdirSync(path.join(editor.folder, kept)).map((name) => editor.read(path.join(kept, name)));
    assert.ok(texts.some((text) => /"output": ?"rejected"/.test(text)));
    assert.equal(await rows('publish', 'running').count(), 1); // the other one hasn't noticed
    await rows('publish', 'running').hover();
    await rows('publish', 'running').locator('.action-label[aria-label^="Cancel"]').click();
    await rows('publish', 'cancelled').waitFor();
    assert.equal(await rows('', 'running').count(), 0);
  });

  await act('the view of runs resumes the cancelled one, and approves it', async () => {
    const row = (words) => page.locator('.pane-body .monaco-list-row').filter({ hasText: 'publish' }).filter({ hasText: words });
    editor.write('recordings/publish.json', recording(60));
    await row('cancelled').hover();
    await row('cancelled').locator('.action-label[aria-label^="Resume"]').click();
    await row('waits at ok').waitFor();
    assert.equal(await row('cancelled').count(), 0); // it is the same run that goes on
    await row('waits at ok').hover();
    await row('waits at ok').locator('.action-label[aria-label^="Approve"]').click();
    await row('success').nth(2).waitFor();
  });

  await act('a missing key is named, and the mock offered', async () => {
    await editor.open('real.loom.yaml');
    await lens(/^▶ Run$/).click();
    const toast = page.locator('.notification-toast').filter({ hasText: 'OPENAI_API_KEY' });
    await toast.first().waitFor();
    await toast.getByText(/mock/i).last().click();
    await hints(/✓/).waitFor();
  });

  await act('a step that failed says why, until it is edited', async () => {
    await editor.open('broken.loom.yaml');
    await lens('Run with mock').click();
    await page.locator('.squiggly-error').first().waitFor();
    await hints(/✗.failed/).waitFor();
    await editor.goTo(5, 10);
    await editor.command('Show or Focus Hover');
    await page.locator('.monaco-hover').getByText(/nothing-here\.txt/).first().waitFor();
    await page.keyboard.press('Escape');
    await editor.goTo(8, 30);
    await page.keyboard.type('x');
    await page.locator('.squiggly-error').first().waitFor({ state: 'detached' });
  });
});
