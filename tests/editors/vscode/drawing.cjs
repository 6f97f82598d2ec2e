// The graph: drawn beside the text, goes where it is clicked, follows the cursor, opens subworkflows, works with the keyboard, is saved, in any theme.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { scenario, Editor } = require('./scenario.cjs');

const TEXT = `\
name: newsroom
config:
  provider: mock
state:
  topic: bees
steps:
  - id: research
    type: llm_call
    prompt: "Facts on {state.topic}"
    output: facts

  - id: route
    type: router
    depends_on: [research]
    conditions:
      - expression: "'long' in state.facts"
        target: article
    default: note

  - id: article
    type: subworkflow
    depends_on: [route]
    workflow_path: parts/article.loom.yaml

  - id: note
    type: subworkflow
    depends_on: [route]
    workflow_inline:
      name: note
      steps:
        - id: shorten
          type: llm_call
          prompt: "Shorten {state.facts}"
          output: short
        - id: headline
          type: llm_call
          depends_on: [shorten]
          prompt: "A headline for {state.short}"
          output: head
`;
const ARTICLE = `\
name: article
steps:
  - id: write
    type: llm_call
    prompt: "Write on {state.facts}"
    output: text
  - id: edit
    type: llm_call
    depends_on: [write]
    prompt: "Edit {state.text}"
    output: text
`;
const MANY = [
  'name: many\nconfig:\n  provider: mock\nsteps:',
  ...Array.from({ length: 150 }, (_, at) => {
    const above = at < 15 ? '' : `    depends_on: [s${at - 15}, s${15 * Math.floor(at / 15 - 1) + ((at * 7) % 15)}]\n`;
    return `  - id: s${at}\n    type: llm_call\n    prompt: Hello\n${above}`;
  }),
].join('\n').replace(/\[(s\d+), \1\]/g, '[$1]');

const WIDE = ['WWWWWMMMMMWWWWW', 'stakeholder_note', 'status_page'].reduce(
  (text, id, at, all) => `${text}  - id: ${id}\n    type: llm_call\n    prompt: Hello\n${at ? `    depends_on: [${all[at - 1]}]\n` : ''}`,
  'name: wide\nconfig:\n  provider: mock\nsteps:\n',
);

const files = { 'newsroom.loom.yaml': TEXT, 'parts/article.loom.yaml': ARTICLE, 'many.loom.yaml': MANY, 'wide.loom.yaml': WIDE };

scenario({ files, size: { width: 1400, height: 800 } }, async (editor, act) => {
  const { page } = editor;
  const refused = []; // what the page's policy kept out
  page.on('console', (message) => /Content Security Policy/.test(message.text()) && /graph\.(js|css)|webview/.test(message.text()) && refused.push(message.text()));
  let graph = editor.graph();
  const step = (id, more = '') => graph.locator(`g.step[data-id="${id}"]${more}`);
  // The line of the cursor, also while the graph has the focus.
  const at = (words) => page.locator('.editor-instance .line-numbers.active-line-number').getByText(String(Editor.place(TEXT, words)[0]), { exact: true });
  const zoom = async () => Number.parseInt(await graph.locator('#fit').textContent(), 10);

  await act('it is drawn beside the text', async () => {
    await editor.open('newsroom.loom.yaml');
    await editor.lines().getByText('layer 1').first().waitFor();
    await page.locator('.editor-actions').getByRole('button', { name: 'agentloom: Show Graph' }).or(page.locator('.editor-actions a[aria-label^="Show Graph"]')).first().click();
    await step('research').waitFor();
    assert.equal(await graph.locator('g.step').count(), 4);
    await graph.locator('.label text').getByText("'long' in state.facts").waitFor();
    await graph.locator('.label text').getByText('default').waitFor();
    assert.match(await step('research').getAttribute('aria-label'), /^research, llm_call, layer 1, on the critical path$/);
  });

  await act('a click lands on the step', async () => {
    await step('route').click();
    await at('id: route').waitFor();
    await step('route', '.here').waitFor();
  });

  await act('the cursor is followed', async () => {
    await page.locator('.monaco-editor .view-line').filter({ hasText: 'Facts on' }).first().click();
    await step('research', '.here').waitFor();
    assert.equal(await graph.locator('g.step.here').count(), 1);
  });

  await act('the keyboard goes from step to step, and to the text', async () => {
    await step('research').focus();
    await page.keyboard.press('ArrowDown');
    await step('route', ':focus').waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Home');
    await step('research', ':focus').waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await at('id: route').waitFor();
    await page.keyboard.type('x'); // the editor has the focus
    await editor.lines().getByText('xroute').first().waitFor();
    await page.keyboard.press('Control+z');
  });

  await act('a mistake is marked at its step', async () => {
    await editor.goTo(...Editor.place(TEXT, 'default: note', 'default: note'.length));
    await page.keyboard.type('s');
    await step('route', '[data-problems="error"]').waitFor();
    await page.keyboard.press('Backspace');
    await step('route', '[data-problems=""]').waitFor();
  });

  await act('a workflow in place is opened', async () => {
    await step('note').locator('.enter').click();
    await step('headline').waitFor();
    assert.equal(await graph.locator('g.step').count(), 2);
    assert.equal(await graph.locator('#way').textContent(), 'newsroom›note');
    await step('headline').click();
    await at('id: headline').waitFor();
    await step('headline', '.here').waitFor();
    await graph.locator('#way button').getByText('newsroom').click();
    await step('note', '.here').waitFor();
  });

  await act('a workflow in a file is opened', async () => {
    await step('article').dblclick();
    await step('edit').waitFor();
    await step('edit').click();
    await page.locator('.tab.active').getByText('article.loom.yaml').waitFor();
    await page.locator('.editor-instance .line-numbers.active-line-number').getByText('7', { exact: true }).waitFor();
    await step('edit').focus();
    await page.keyboard.press('Escape');
    await step('article').waitFor();
    assert.equal(await graph.locator('#way').textContent(), 'newsroom');
  });

  await act('layers lead to the right', async () => {
    const place = async (id) => step(id).locator('.box').first().boundingBox();
    const [first, second] = [await place('research'), await place('route')];
    assert.ok(second.y > first.y + first.height);
    await graph.locator('#direction').click();
    await graph.locator('#direction').getByText('⇄').waitFor();
    const [left, right] = [await place('research'), await place('route')];
    assert.ok(right.x > left.x + left.width);
  });

  await act('it is saved as SVG', async () => {
    await graph.locator('#export').click();
    const input = page.locator('.quick-input-widget input').first();
    const target = path.join(editor.folder, 'newsroom.svg'); // what is proposed
    await input.and(page.locator(':focus')).waitFor();
    await page.waitForFunction((name) => document.querySelector('.quick-input-widget input').value === name, target);
    await page.locator('.quick-input-list .monaco-list-row').getByText('parts').first().waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.notification-toast').getByText('Saved newsroom.svg').waitFor();
    const svg = fs.readFileSync(target, 'utf8');
    assert.match(svg, /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
    assert.match(svg, />research<\/text>/);
    assert.doesNotMatch(svg, /var\(--|<script|class=/);
    const { documentElement } = await page.evaluate((text) => {
      const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
      return { documentElement: parsed.documentElement.nodeName };
    }, svg);
    assert.equal(documentElement, 'svg');
  });

  await act('150 steps can be read', async () => {
    await page.keyboard.press('Escape');
    await editor.open('many.loom.yaml');
    await editor.lines().getByText('layer 1').first().waitFor();
    await editor.command('agentloom: Show Graph');
    await page.locator('.tab').getByText('Graph: many').waitFor();
    graph = page.frameLocator('iframe.webview:visible').last().frameLocator('#active-frame');
    await step('s149').waitFor({ state: 'attached' });
    assert.equal(await graph.locator('g.step').count(), 150);
    assert.ok((await zoom()) >= 75);
    await graph.locator('#minimap:not(.needless)').waitFor();
    await editor.goTo(...Editor.place(MANY, 'id: s140', 4));
    await step('s140', '.here').waitFor();
    const stage = await graph.locator('#stage').boundingBox();
    const box = await step('s140').locator('.box').first().boundingBox();
    assert.ok(box.x >= stage.x && box.x + box.width <= stage.x + stage.width && box.y >= stage.y && box.y + box.height <= stage.y + stage.height);
  });

  await act('all of it is seen', async () => {
    await graph.locator('#fit').click();
    await graph.locator('#minimap.needless').waitFor({ state: 'attached' });
    assert.ok((await zoom()) < 60);
    assert.deepEqual(refused, []);
  });

  await act('names keep to their boxes, however far away', async () => {
    await page.keyboard.press('Escape');
    await editor.open('wide.loom.yaml');
    await editor.lines().getByText('layer 1').first().waitFor();
    await editor.command('agentloom: Show Graph');
    await page.locator('.tab').getByText('Graph: wide').waitFor();
    graph = page.frameLocator('iframe.webview:visible').last().frameLocator('#active-frame');
    await step('stakeholder_note').waitFor();
    const outside = () => graph.locator('g.step').evaluateAll((steps) => steps.filter((one) => {
      const frame = one.querySelector('.box').getBoundingClientRect();
      return [...one.querySelectorAll('.name, .detail')].map((words) => words.getBoundingClientRect())
        .some(({ width, left, right }) => width > 0 && (left < frame.left || right > frame.right));
    }).map((one) => one.dataset.id));
    for (let level = await zoom(); level > 30; level = await zoom()) {
      assert.deepEqual(await outside(), [], `at ${level} %`);
      await graph.locator('#out').click();
    }
  });

  await act('words can be read in dark and in high-contrast themes', async () => {
    await graph.locator('#fit').click();
    // As they are painted: colours may be mixed, and let others shine through.
    const contrasts = () => graph.locator('g.step').evaluateAll((steps) => {
      const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      const light = (...colours) => {
        for (const colour of colours) {
          context.fillStyle = colour;
          context.fillRect(0, 0, 1, 1);
        }
        const [red, green, blue] = [...context.getImageData(0, 0, 1, 1).data].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
      };
      const paper = getComputedStyle(document.body).backgroundColor;
      return steps.flatMap((one) => {
        const box = getComputedStyle(one.querySelector('.box')).fill;
        return [...one.querySelectorAll('.name, .detail')].map((words) => {
          const [low, high] = [light(paper, box), light(paper, box, getComputedStyle(words).fill)].sort((a, b) => a - b);
          return (high + 0.05) / (low + 0.05);
        });
      });
    });
    for (const [theme, kind] of [['Dark Modern', 'vscode-dark'], ['Light High Contrast', 'vscode-high-contrast-light'], ['Dark High Contrast', 'vscode-high-contrast:not(.vscode-high-contrast-light)']]) {
      await page.locator('.monaco-editor .view-line').last().click();
      await page.keyboard.press('Control+k');
      await page.keyboard.press('Control+t');
      await page.locator('.quick-input-list .monaco-list-row.focused').waitFor();
      await page.keyboard.type(theme);
      await editor.chosen(theme).waitFor();
      await page.keyboard.press('Enter');
      await graph.locator(`body.${kind}`).waitFor();
      const found = await contrasts();
      assert.equal(found.length, 6, theme);
      assert.ok(Math.min(...found) >= 4.5, `${theme}: ${found}`);
    }
  });
});
