// A real VS Code in a real Chromium, with the extension in an empty profile: for tests, measurements and pictures.
//
// Environment: VSCODE_INSTALL (the folder that install.sh filled), VSCODE_EXTENSION (the .vsix). `agentloom` is on the PATH.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');

const modules = path.join(path.resolve(process.env.VSCODE_INSTALL), 'node_modules');
const { chromium } = require(path.join(modules, 'playwright-core'));
const program = path.join(modules, 'code-server', 'out', 'node', 'entry.js');

const SETTINGS = {
  'workbench.startupEditor': 'none',
  'workbench.reduceMotion': 'on',
  'workbench.colorTheme': 'Default Light Modern',
  'chat.commandCenter.enabled': false,
  'editor.minimap.enabled': false,
  'editor.cursorBlinking': 'solid',
  'telemetry.telemetryLevel': 'off',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
  'git.enabled': false,
};

const BROWSER = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--force-color-profile=srgb',
];

function browserPath() {
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  const folders = process.env.PATH.split(path.delimiter);
  const found = names.flatMap((name) => folders.map((folder) => path.join(folder, name))).find((one) => fs.existsSync(one));
  if (!found) throw new Error(`none of ${names.join(', ')} is on the PATH`);
  return found;
}

function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

function finished(child) {
  return new Promise((resolve, reject) => {
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text));
    child.on('error', reject);
    child.on('exit', (code) => (code === 0 ? resolve(said) : reject(new Error(`ended with ${code}: ${said}`))));
  });
}

class Editor {
  /** The lines of a text that hold some words: line and column (from 1), `further` characters on. */
  static place(text, words, further = 0) {
    const lines = text.split('\n');
    const number = lines.findIndex((line) => line.includes(words));
    if (number < 0) throw new Error(`no ${words}`);
    return [number + 1, lines[number].indexOf(words) + 1 + further];
  }

  /**
   * Start an editor. `files`: texts by their names in the folder that is opened; `copy`: a folder whose files are there too;
   * `trusted`: whether the folder is trusted, without a question; `extensions`: what is installed, the .vsix of this project unless given.
   */
  static async start({ files = {}, copy, settings = {}, size = { width: 1100, height: 700 }, scale = 1, environment = {}, trusted = true, extensions = [process.env.VSCODE_EXTENSION] }) {
    const editor = new Editor();
    editor.work = fs.mkdtempSync(path.join(os.tmpdir(), 'agentloom-vscode-'));
    try {
      await editor.#start({ files, copy, settings, size, scale, environment, trusted, extensions });
    } catch (error) {
      await editor.close();
      throw error;
    }
    return editor;
  }

  async #start({ files, copy, settings, size, scale, environment, trusted, extensions }) {
    const data = path.join(this.work, 'data');
    const profile = ['--user-data-dir', data, '--extensions-dir', path.join(this.work, 'extensions')];
    this.folder = path.join(this.work, 'workflows');
    fs.mkdirSync(path.join(data, 'User'), { recursive: true });
    fs.mkdirSync(this.folder);
    fs.writeFileSync(path.join(data, 'User', 'settings.json'), JSON.stringify({ ...SETTINGS, ...settings }));
    if (copy) fs.cpSync(copy, this.folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    // The server of VS Code asks a login shell for its environment.
    const all = { ...process.env, ...environment, HOME: this.work, SHELL: '/bin/bash' };
    delete all.PYTHONPATH;
    fs.writeFileSync(path.join(this.work, '.bash_profile'), `export PATH='${all.PATH}'\n`);
    const options = { cwd: this.work, env: all, stdio: ['ignore', 'pipe', 'pipe'] };
    for (const one of extensions) {
      this.installed = await finished(spawn(process.execPath, [program, ...profile, '--install-extension', path.resolve(one)], options));
    }
    const port = await freePort();
    const args = ['--auth', 'none', '--bind-addr', `127.0.0.1:${port}`, '--disable-telemetry', '--disable-update-check',
      ...(trusted ? ['--disable-workspace-trust'] : []), '--disable-getting-started-override', ...profile, this.folder];
    this.child = spawn(process.execPath, [program, ...args], { ...options, detached: true });
    this.said = '';
    await new Promise((resolve, reject) => {
      for (const stream of [this.child.stdout, this.child.stderr]) {
        stream.on('data', (text) => {
          this.said += text;
          if (this.said.includes('HTTP server listening')) resolve();
        });
      }
      this.child.on('exit', (code) => reject(new Error(`code-server ended with ${code}: ${this.said}`)));
    });
    this.browser = await chromium.launch({ executablePath: browserPath(), args: BROWSER });
    this.page = await this.browser.newPage({ viewport: size, deviceScaleFactor: scale });
    this.page.setDefaultTimeout(45_000);
    await this.page.goto(`http://127.0.0.1:${port}/?folder=${this.folder}`);
    await this.page.locator('.monaco-workbench').waitFor();
  }

  write(name, text) {
    const file = path.join(this.folder, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
    return file;
  }

  /** The text of a file in the folder; nothing while there is none. */
  read(name) {
    const file = path.join(this.folder, name);
    return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  }

  /** The lines of the editor that are in sight, as they are painted: hints and lenses are not among them. */
  lines() {
    return this.page.locator('.editor-instance .view-lines');
  }

  /** The page of the graph view. */
  graph() {
    return this.page.frameLocator('iframe.webview').first().frameLocator('#active-frame');
  }

  async open(name) {
    await this.page.keyboard.press('Control+p');
    await this.page.locator('.quick-input-widget input').first().waitFor();
    await this.page.keyboard.type(name);
    await this.chosen(name).waitFor();
    await this.page.keyboard.press('Enter');
    await this.page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
    await this.page.locator(`.monaco-editor[data-uri$="/${name}"]`).first().waitFor();
  }

  async goTo(line, column) {
    await this.page.keyboard.press('Control+g');
    await this.page.locator('.quick-input-widget input').first().waitFor();
    await this.page.keyboard.type(`${line}:${column}`);
    await this.page.keyboard.press('Enter');
    await this.page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
  }

  /** The line of a list to choose from that Enter would take, where it holds some words. */
  chosen(words) {
    return this.page.locator('.quick-input-list .monaco-list-row.focused').getByText(words).first();
  }

  /** Carry out a command of the palette; it may go on asking. The palette is opened anew until it knows the command. */
  async command(name) {
    for (let tries = 0; ; tries++) {
      await this.page.keyboard.press('F1');
      await this.page.locator('.quick-input-widget input').first().waitFor();
      await this.page.keyboard.type(name);
      try {
        await this.chosen(name).waitFor({ timeout: 4000 });
        break;
      } catch (error) {
        if (tries === 10) throw error;
        await this.page.keyboard.press('Escape');
      }
    }
    await this.page.keyboard.press('Enter');
  }

  /** Save the file at hand, and wait until what is on the disk matches a pattern; return it. */
  async saved(name, pattern) {
    await this.page.keyboard.press('Control+s');
    await this.until(() => pattern.test(this.read(name)), () => `${name} matches ${pattern}:\n${this.read(name)}`);
    return this.read(name);
  }

  /** Wait until something holds that the page doesn't show. `words` say what, if it never does. */
  async until(holds, words) {
    const end = Date.now() + 45_000;
    while (!holds()) {
      if (Date.now() > end) throw new Error(`it never came true that ${typeof words === 'function' ? words() : words}`);
      await this.page.waitForTimeout(30);
    }
  }

  async close() {
    await this.browser?.close();
    if (this.child && this.child.exitCode === null) {
      const gone = new Promise((resolve) => this.child.once('exit', resolve));
      process.kill(-this.child.pid, 'SIGKILL');
      await gone;
    }
    fs.rmSync(this.work, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

module.exports = { Editor };
