// Presses keys in a real VS Code, and measures in the page how long it takes until what they did is seen.
// Usage: node vscode.cjs WORKFLOW ROUNDS; environment as scripts/vscode/editor.cjs says. Prints times in milliseconds as JSON.

const fs = require('node:fs');
const path = require('node:path');
const { Editor } = require('../scripts/vscode/editor.cjs');

const [workflow, rounds] = [process.argv[2], Number(process.argv[3])];
const TEXT = fs.readFileSync(workflow, 'utf8');

// In the page: returns a promise of the time between the next key press and the moment when the number of squiggles is another one.
function watch(page) {
  return page.evaluate(() => {
    window.measured = new Promise((resolve) => {
      const count = () => document.querySelectorAll('.squiggly-error').length;
      const before = count();
      let pressed;
      window.addEventListener('keydown', (event) => (pressed ??= event.timeStamp), { capture: true, once: true });
      const observer = new MutationObserver(() => {
        if (pressed === undefined || count() === before) return;
        observer.disconnect();
        requestAnimationFrame(() => resolve(performance.now() - pressed));
      });
      observer.observe(document.querySelector('.editor-instance'), { childList: true, subtree: true, attributes: true });
    });
  });
}

async function main() {
  const editor = await Editor.start({ files: { 'measured.loom.yaml': TEXT } });
  const { page } = editor;
  const found = { 'key press to squiggle': [], 'key press to squiggle gone': [] };
  try {
    await editor.open('measured.loom.yaml');
    await editor.lines().getByText(/layer.1/).first().waitFor();
    const needles = TEXT.split('\n').map((line, at) => [line, at + 1]).filter(([line]) => /depends_on: \[\w/.test(line));
    const [line, number] = needles[Math.floor(needles.length / 2)];
    await editor.goTo(number, line.indexOf('[') + 2);
    for (let round = -3; round < rounds; round++) {
      for (const [name, key] of [['key press to squiggle', 'x'], ['key press to squiggle gone', 'Backspace']]) {
        await page.waitForTimeout(700); // the editor is idle
        await watch(page);
        await page.keyboard.press(key);
        const time = await page.evaluate(() => window.measured);
        if (round >= 0) found[name].push(time); // the first ones warm up
      }
    }
  } finally {
    await editor.close();
  }
  console.log(JSON.stringify(found));
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
