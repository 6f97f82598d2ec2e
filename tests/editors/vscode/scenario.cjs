// A tale told in a real VS Code, act by act. Each act leaves a picture in SCREENS; the first that fails ends the tale and leaves `failed.png`.

const fs = require('node:fs');
const path = require('node:path');
const { Editor } = require('../../../scripts/vscode/editor.cjs');

async function scenario(options, tell) {
  const screens = process.env.SCREENS;
  fs.rmSync(screens, { recursive: true, force: true });
  fs.mkdirSync(screens, { recursive: true });
  let current = 'VS Code starts';
  let number = 0;
  let begun = Date.now();
  const editor = await Editor.start(options);
  console.log(`started (${Date.now() - begun} ms)`);
  begun = Date.now();
  async function act(name, play) {
    current = name;
    await play();
    number += 1;
    const file = `${String(number).padStart(2, '0')}-${name.replace(/[^A-Za-z0-9]+/g, '-')}.png`;
    await editor.page.screenshot({ path: path.join(screens, file) });
    console.log(`done: ${name} (${Date.now() - begun} ms)`);
    begun = Date.now();
  }
  try {
    await tell(editor, act);
  } catch (error) {
    await editor.page.screenshot({ path: path.join(screens, 'failed.png') });
    console.log(`failed: ${current}\n${error.stack}`);
    process.exitCode = 1;
  } finally {
    await editor.close();
  }
}

module.exports = { scenario, Editor };
