// Takes pictures of agentloom at work in a real VS Code.
// Usage: node take.cjs INSTALL_FOLDER OUTPUT_FOLDER EXTENSION_CODE WORKFLOW [PICTURE...]; `agentloom` is on the PATH.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');

const [install, output, extensionCode, workflow] = process.argv.slice(2, 6).map((name) => path.resolve(name));
const modules = path.join(install, 'node_modules');
const { chromium } = require(path.join(modules, 'playwright-core'));
const TEXT = fs.readFileSync(workflow, 'utf8');
const SIZE = { width: 800, height: 460 };
const TITLE = 30; // the height of the title bar, which is left out

const SETTINGS = {
  'workbench.colorTheme': 'Default Light Modern',
  'workbench.startupEditor': 'none',
  'workbench.activityBar.location': 'hidden',
  'workbench.statusBar.visible': false,
  'workbench.editor.showTabs': 'none',
  'workbench.layoutControl.enabled': false,
  'window.commandCenter': false,
  'window.menuBarVisibility': 'hidden',
  'breadcrumbs.enabled': false,
  'chat.commandCenter.enabled': false,
  'editor.minimap.enabled': false,
  'editor.stickyScroll.enabled': false,
  'editor.scrollbar.vertical': 'hidden',
  'editor.overviewRulerBorder': false,
  'editor.hideCursorInOverviewRuler': true,
  'editor.occurrencesHighlight': 'off',
  'editor.scrollbar.verticalScrollbarSize': 0,
  'workbench.reduceMotion': 'on',
  'editor.fontSize': 13,
  'editor.lineHeight': 19,
  'editor.scrollBeyondLastLine': true,
  'editor.semanticHighlighting.enabled': true,
  'editor.inlayHints.fontSize': 11,
  'editor.hover.delay': 100,
  'editor.renderLineHighlight': 'none',
  'editor.folding': false,
  'editor.cursorBlinking': 'solid',
  'editor.suggest.showStatusBar': false,
  'telemetry.telemetryLevel': 'off',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
};

// The client of lsp/README.md as an extension, with the library that it needs beside it.
function makeExtension(folder) {
  const home = path.join(folder, 'agentloom.pictures-0.0.1');
  fs.mkdirSync(home, { recursive: true });
  const manifest = {
    name: 'pictures',
    publisher: 'agentloom',
    version: '0.0.1',
    engines: { vscode: '^1.90.0' },
    main: './extension.js',
    activationEvents: ['onLanguage:yaml'],
    contributes: {},
  };
  fs.writeFileSync(path.join(home, 'package.json'), JSON.stringify(manifest));
  fs.copyFileSync(extensionCode, path.join(home, 'extension.js'));
  fs.symlinkSync(modules, path.join(home, 'node_modules'));
}

function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function startEditor(work) {
  const port = await freePort();
  const data = path.join(work, 'data');
  fs.mkdirSync(path.join(data, 'User'), { recursive: true });
  fs.writeFileSync(path.join(data, 'User', 'settings.json'), JSON.stringify(SETTINGS));
  makeExtension(path.join(work, 'extensions'));
  const folder = path.join(work, 'workflows');
  fs.mkdirSync(folder);
  for (const [name, { text }] of Object.entries(PICTURES)) fs.writeFileSync(path.join(folder, `${name}.loom.yaml`), text(TEXT));
  // The server of VS Code asks a login shell for its environment.
  fs.writeFileSync(path.join(work, '.bash_profile'), `export PATH='${process.env.PATH}'\n`);
  const program = path.join(modules, 'code-server', 'out', 'node', 'entry.js');
  const argumentsOf = [
    program, '--auth', 'none', '--bind-addr', `127.0.0.1:${port}`, '--disable-telemetry', '--disable-update-check',
    '--disable-workspace-trust', '--disable-getting-started-override', '--user-data-dir', data,
    '--extensions-dir', path.join(work, 'extensions'), folder,
  ];
  const child = spawn(process.execPath, argumentsOf, { env: { ...process.env, HOME: work, SHELL: '/bin/bash' }, stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve, reject) => {
    child.stdout.on('data', (text) => String(text).includes('HTTP server listening') && resolve());
    child.on('exit', (code) => reject(new Error(`code-server ended with ${code}`)));
  });
  return { child, url: `http://127.0.0.1:${port}/?folder=${folder}` };
}

// Puts the cursor on a place in the file, by the editor's own command.
async function goTo(page, line, column) {
  await page.keyboard.press('Control+g');
  await page.locator('.quick-input-widget input').first().waitFor();
  await page.keyboard.type(`${line}:${column}`);
  await page.keyboard.press('Enter');
  await page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
}

async function open(page, name) {
  await page.keyboard.press('Control+p');
  await page.locator('.quick-input-widget input').first().waitFor();
  await page.keyboard.type(name);
  await page.getByRole('option', { name }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
  await page.locator(`.editor-instance[aria-label*="${name}"], .monaco-editor[data-uri$="/${name}"]`).first().waitFor();
  await page.locator('.view-lines').getByText(/layer.1/).first().waitFor(); // the server is there
}

async function command(page, name) {
  await page.keyboard.press('F1');
  await page.locator('.quick-input-widget input').first().waitFor();
  await page.keyboard.type(name);
  await page.locator('.quick-input-list .monaco-list-row').first().waitFor();
  await page.keyboard.press('Enter');
  await page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
}

// Line and column (from 1) of some words in a text, `further` characters on.
function find(text, words, further = 0) {
  const lines = text.split('\n');
  const number = lines.findIndex((line) => line.includes(words));
  if (number < 0) throw new Error(`no ${words}`);
  return [number + 1, lines[number].indexOf(words) + 1 + further];
}

function replace(text, words, others) {
  if (!text.includes(words)) throw new Error(`no ${words}`);
  return text.replace(words, others);
}

const MISSPELT = (text) => replace(text, 'target: billing_reply', 'target: biling_reply');
const SAME = (text) => text;

// What each picture shows: the text that is opened, and what is done to it.
const PICTURES = {
  diagnostics: {
    text: MISSPELT,
    async show(page, text) {
      await page.locator('.squiggly-error').first().waitFor();
      await goTo(page, ...find(text, 'biling_reply', 3));
      await command(page, 'Show or Focus Hover');
      await page.getByText('did you mean').first().waitFor();
    },
  },
  actions: {
    text: MISSPELT,
    async show(page, text) {
      await page.locator('.squiggly-error').first().waitFor();
      await goTo(page, ...find(text, 'biling_reply', 3));
      await page.keyboard.press('Control+.');
      await page.locator('.action-widget').getByText('billing_reply').first().waitFor();
    },
  },
  completion: {
    text: (text) => replace(text, 'technical team: {state.ticket}', 'technical team: {state.'),
    async show(page, text) {
      await goTo(page, ...find(text, 'technical team: {state.', 'technical team: {state.'.length));
      await page.keyboard.press('Control+Space');
      await page.locator('.suggest-widget .monaco-list-row').getByText('category').first().waitFor();
    },
  },
  keys: {
    text: (text) => replace(text, '    output: category\n', '    output: category\n    \n'),
    async show(page, text) {
      await goTo(page, find(text, 'output: category')[0] + 1, 5);
      await page.keyboard.type('t');
      await page.keyboard.press('Control+Space');
      await page.locator('.suggest-widget .monaco-list-row').getByText('temperature').first().waitFor();
      await page.keyboard.press('Control+Space');
      await page.locator('.suggest-details .markdown-docs').waitFor();
    },
  },
  rename: {
    text: SAME,
    async show(page, text) {
      await goTo(page, ...find(text, 'id: classify', 6));
      await page.keyboard.press('F2');
      await page.locator('.rename-box input:focus').waitFor();
      await page.keyboard.type('sort_ticket');
    },
  },
  hints: {
    text: (text) => replace(text, '    output: category\n', '    output: category\n    retry: { max_retries: 3 }\n'),
    async show(page, text) {
      await goTo(page, ...find(text, 'id: route', 4));
      await page.locator('.view-lines').getByText(/attempts/).first().waitFor();
    },
  },
  hover: {
    text: SAME,
    async show(page, text) {
      await goTo(page, ...find(text, 'depends_on: [classify]', 15));
      await command(page, 'Show or Focus Hover');
      await page.locator('.monaco-hover').getByText('llm_call').first().waitFor();
    },
  },
};

async function main() {
  const wanted = process.argv.length > 6 ? process.argv.slice(6) : Object.keys(PICTURES);
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'agentloom-pictures-'));
  const { child, url } = await startEditor(work);
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--force-color-profile=srgb'],
  });
  try {
    const page = await browser.newPage({ viewport: SIZE, deviceScaleFactor: 1.5 });
    await page.goto(url);
    await page.locator('.monaco-workbench').waitFor();
    await page.keyboard.press('Control+b');
    for (const name of wanted) {
      const { text, show } = PICTURES[name];
      await open(page, `${name}.loom.yaml`);
      await show(page, text(TEXT));
      await page.waitForFunction(() => [...document.querySelectorAll('.monaco-hover')].every((one) => getComputedStyle(one).opacity === '1'));
      await page.screenshot({ animations: 'disabled', path: path.join(output, `${name}.png`), clip: { x: 0, y: TITLE, width: SIZE.width, height: SIZE.height - TITLE } });
      console.log(name);
      await page.keyboard.press('Escape');
      await page.keyboard.press('Escape');
    }
  } catch (error) {
    await browser.contexts()[0]?.pages()[0]?.screenshot({ path: path.join(os.tmpdir(), 'agentloom-picture-failed.png') });
    throw error;
  } finally {
    await browser.close();
    child.kill();
    fs.rmSync(work, { recursive: true, force: true });
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
