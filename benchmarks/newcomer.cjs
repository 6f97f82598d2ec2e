// The actions of a newcomer in a real VS Code. Prints what each did and when it was done, in seconds from the first.
// Environment as scripts/vscode/editor.cjs says; agentloom is not on the PATH.

const { Editor } = require('../scripts/vscode/editor.cjs');

async function main() {
  const start = Date.now();
  let actions = 0;
  const tell = (words) => console.log(`${((Date.now() - start) / 1000).toFixed(1).padStart(6)} s  action ${(actions += 1)}: ${words}`);
  const editor = await Editor.start({ size: { width: 1200, height: 750 } });
  const { page } = editor;
  page.setDefaultTimeout(120_000);
  try {
    tell('the .vsix is installed, VS Code shows an empty folder');
    await editor.command('agentloom: New Workflow…');
    await page.locator('.quick-input-title').getByText('New workflow').waitFor();
    await page.keyboard.type('hello');
    await page.keyboard.press('Enter');
    await page.locator('.tab').getByText('hello.loom.yaml').waitFor();
    tell('a new workflow is open');
    await page.locator('.notification-toast').getByText('Install…').click();
    await page.locator('.quick-input-list').getByText('Create .venv in this folder').waitFor();
    tell('asked for an installation');
    await page.keyboard.press('Enter');
    await editor.lines().getByText(/layer.1/).waitFor();
    tell('agentloom is installed in a new environment, the workflow checked');
    await page.locator('.codelens-decoration a').filter({ hasText: 'Run with mock' }).click();
    await page.waitForFunction(() => (document.querySelector('.editor-instance .view-lines').textContent.match(/✓/g) ?? []).length === 2);
    tell('both steps are green');
    if (process.env.PICTURE) await page.screenshot({ path: process.env.PICTURE });
  } finally {
    await editor.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
