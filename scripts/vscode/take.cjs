// Takes pictures of agentloom's extension at work in a real VS Code.
// Usage: node take.cjs OUTPUT_FOLDER WORKFLOW [PICTURE...]; `agentloom` is on the PATH, and the environment as editor.cjs says.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { Editor } = require('./editor.cjs');

const [output, workflow] = process.argv.slice(2, 4).map((name) => path.resolve(name));
const TEXT = fs.readFileSync(workflow, 'utf8');
const SIZE = { width: 800, height: 460 };
const TITLE = 30; // the height of the title bar, which is left out

const SETTINGS = {
  'workbench.activityBar.location': 'hidden',
  'workbench.statusBar.visible': false,
  'workbench.editor.showTabs': 'none',
  'workbench.layoutControl.enabled': false,
  'window.commandCenter': false,
  'window.menuBarVisibility': 'hidden',
  'breadcrumbs.enabled': false,
  'editor.stickyScroll.enabled': false,
  'editor.scrollbar.vertical': 'hidden',
  'editor.overviewRulerBorder': false,
  'editor.hideCursorInOverviewRuler': true,
  'editor.occurrencesHighlight': 'off',
  'editor.scrollbar.verticalScrollbarSize': 0,
  'editor.fontSize': 13,
  'editor.lineHeight': 19,
  'editor.scrollBeyondLastLine': true,
  'editor.semanticHighlighting.enabled': true,
  'editor.inlayHints.fontSize': 11,
  'editor.hover.delay': 100,
  'editor.renderLineHighlight': 'none',
  'editor.folding': false,
  'editor.suggest.showStatusBar': false,
  'agentloom.lenses.steps': false,
};

function replace(text, words, others) {
  if (!text.includes(words)) throw new Error(`no ${words}`);
  return text.replace(words, others);
}

// What the model answered, long ago.
const reply = (content, tokens, latency) => ({ content, model: 'gpt-4o-mini', provider: 'openai', usage: { prompt_tokens: tokens, completion_tokens: 24, total_tokens: tokens + 24 }, cost_usd: tokens * 2.1e-6, latency_ms: latency });
const RECORDING = {
  _version: 2,
  classify: reply('billing', 74, 310),
  billing_reply: reply('Dear Priya, we will refund the second payment by Friday.', 182, 940),
};
const OFFLINE = (text) => replace(replace(text, '  provider: openai\n', '  provider: mock\n'), '  model: gpt-4o-mini\n', '  model: gpt-4o-mini\n  responses_file: recordings/support.json\n  latency_model: replay\n');

async function run(page) {
  await page.locator('.codelens-decoration a').filter({ hasText: 'Run with mock' }).first().click();
  await page.locator('.view-lines').getByText(/✓.0.ms/).first().waitFor();
}

const MISSPELT = (text) => replace(text, 'target: billing_reply', 'target: biling_reply');
const SAME = (text) => text;

// What each picture shows: the text that is opened, and what is done to it.
const PICTURES = {
  diagnostics: {
    text: MISSPELT,
    async show(editor, page, text) {
      await page.locator('.squiggly-error').first().waitFor();
      await editor.goTo(...Editor.place(text, 'biling_reply', 3));
      await editor.command('Show or Focus Hover');
      await page.getByText('did you mean').first().waitFor();
    },
  },
  actions: {
    text: MISSPELT,
    async show(editor, page, text) {
      await page.locator('.squiggly-error').first().waitFor();
      await editor.goTo(...Editor.place(text, 'biling_reply', 3));
      await page.keyboard.press('Control+.');
      await page.locator('.action-widget').getByText('billing_reply').first().waitFor();
    },
  },
  completion: {
    text: (text) => replace(text, 'technical team: {state.ticket}', 'technical team: {state.'),
    async show(editor, page, text) {
      await editor.goTo(...Editor.place(text, 'technical team: {state.', 'technical team: {state.'.length));
      await page.keyboard.press('Control+Space');
      await page.locator('.suggest-widget .monaco-list-row').getByText('category').first().waitFor();
    },
  },
  keys: {
    text: (text) => replace(text, '    output: category\n', '    output: category\n    \n'),
    async show(editor, page, text) {
      await editor.goTo(Editor.place(text, 'output: category')[0] + 1, 5);
      await page.keyboard.type('t');
      await page.keyboard.press('Control+Space');
      await page.locator('.suggest-widget .monaco-list-row').getByText('temperature').first().waitFor();
      await page.keyboard.press('Control+Space');
      await page.locator('.suggest-details .markdown-docs').waitFor();
    },
  },
  rename: {
    text: SAME,
    async show(editor, page, text) {
      await editor.goTo(...Editor.place(text, 'id: classify', 6));
      await page.keyboard.press('F2');
      await page.locator('.rename-box input:focus').waitFor();
      await page.keyboard.type('sort_ticket');
    },
  },
  hints: {
    text: (text) => replace(text, '    output: category\n', '    output: category\n    retry: { max_retries: 3 }\n'),
    async show(editor, page, text) {
      await editor.goTo(...Editor.place(text, 'id: route', 4));
      await page.locator('.view-lines').getByText(/attempts/).first().waitFor();
    },
  },
  lenses: {
    text: OFFLINE,
    size: { width: 800, height: 690 },
    async show(editor, page) {
      await run(page);
      await page.locator('.view-lines').getByText(/–.skipped/).first().waitFor();
      await page.locator('.view-lines').getByText(/…/).first().waitFor({ state: 'detached' });
      await page.locator('.codelens-decoration a').filter({ hasText: 'Cancel' }).first().waitFor({ state: 'detached' });
    },
  },
  graph: {
    text: OFFLINE,
    size: { width: 1200, height: 620 },
    async show(editor, page, text) {
      await run(page);
      await editor.command('agentloom: Show Graph');
      await editor.graph().locator('g.step[data-id="billing_reply"][data-status="success"]').waitFor();
      await editor.goTo(...Editor.place(text, 'id: route', 4));
      await editor.graph().locator('g.step.here[data-id="route"]').waitFor();
    },
  },
  hover: {
    text: SAME,
    async show(editor, page, text) {
      await editor.goTo(...Editor.place(text, 'depends_on: [classify]', 15));
      await editor.command('Show or Focus Hover');
      await page.locator('.monaco-hover').getByText('llm_call').first().waitFor();
    },
  },
};

async function main() {
  const wanted = process.argv.length > 4 ? process.argv.slice(4) : Object.keys(PICTURES);
  const files = Object.fromEntries(wanted.map((name) => [`${name}.loom.yaml`, PICTURES[name].text(TEXT)]));
  files['recordings/support.json'] = JSON.stringify(RECORDING);
  const editor = await Editor.start({ files, settings: SETTINGS, size: SIZE, scale: 1.5, environment: { OPENAI_API_KEY: '' } });
  const { page } = editor;
  try {
    await page.keyboard.press('Control+b');
    for (const name of wanted) {
      const { text, show, size = SIZE } = PICTURES[name];
      await page.setViewportSize(size);
      await editor.open(`${name}.loom.yaml`);
      await editor.lines().getByText(/layer.1/).first().waitFor(); // the server is there
      await show(editor, page, text(TEXT));
      await page.waitForFunction(() => [...document.querySelectorAll('.monaco-hover')].every((one) => getComputedStyle(one).opacity === '1'));
      await page.mouse.move(size.width - 5, size.height - 5);
      await page.screenshot({ animations: 'disabled', path: path.join(output, `${name}.png`), clip: { x: 0, y: TITLE, width: size.width, height: size.height - TITLE } });
      console.log(name);
      await page.keyboard.press('Escape');
      await page.keyboard.press('Escape');
    }
  } catch (error) {
    await page.screenshot({ path: path.join(os.tmpdir(), 'agentloom-picture-failed.png') });
    throw error;
  } finally {
    await editor.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
