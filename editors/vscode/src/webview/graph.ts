// The page of the graph view: shows a drawing, follows the cursor and the run, and tells where the user wants to go.
import type { FromPage, Problems, ToPage } from '../graph/messages';
import type { Direction, Drawing, GraphNode } from '../protocol';
import { begin, type Camera, centre, fit, READABLE, reveal, zoomAt } from './camera';
import { draw, element, heads, nameOf, showGoing, showProblems } from './draw';
import { Minimap } from './minimap';
import { standalone } from './standalone';
import { type Arrow, towards } from './steering';
import { Progress, told } from './progress';

interface Kept {
  readonly uri?: string;
  readonly critical?: boolean;
}

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void; getState(): Kept | undefined; setState(state: Kept): void };

const vscode = acquireVsCodeApi();
const say = (message: FromPage) => {
  vscode.postMessage(message);
};

function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no #${id}`);
  return found;
}

/** A workflow that is looked at: the whole one, or one that a step runs. */
interface Level {
  readonly name: string;
  /** The path of the step that runs it, with a dot behind; empty for the whole. */
  readonly prefix: string;
  readonly drawing: Drawing;
  camera?: Camera;
  chosen?: string;
}

const stage = byId('stage');
const svg = element('svg', { role: 'group', 'aria-label': 'Graph of the workflow' });
const minimap = new Minimap((x, y) => {
  const here = level();
  if (here !== undefined) look(centre(camera.zoom, x, y, here.drawing, room()));
});
stage.append(svg, minimap.root);
const progress = new Progress();
let levels: Level[] = [];
let direction: Direction = 'down';
/** The direction of the drawing before. */
let shownIn: Direction | undefined;

let problems: Readonly<Record<string, Problems>> = {};
let cursor: string | null = null;
let camera: Camera = { x: 0, y: 0, zoom: 1 };
/** Files that steps run, by the path of the step. */
const files = new Map<string, Drawing>();
let wanted: string | undefined; // the step whose file was asked for

const level = () => levels.at(-1);
const steps = () => [...svg.querySelectorAll<SVGGElement>('g.step')];
const stepOf = (id: string) => steps().find((one) => one.dataset.id === id);
const nodeOf = (id: string) => level()?.drawing.nodes.find((one) => one.id === id);
const room = () => ({ width: stage.clientWidth, height: stage.clientHeight });
const pathOf = (node: GraphNode) => `${level()?.prefix ?? ''}${node.path.split('.').at(-1) ?? node.id}`;

function look(next: Camera): void {
  camera = next;
  const here = level();
  if (here !== undefined) here.camera = next;
  svg.querySelector('#drawing')?.setAttribute('transform', `translate(${camera.x} ${camera.y}) scale(${camera.zoom})`);
  if (here !== undefined) minimap.look(camera, here.drawing, room());
  svg.classList.toggle('far', camera.zoom < READABLE);
  byId('fit').textContent = `${Math.round(camera.zoom * 100)}%`;
}

/** Draw the level that is looked at. */
function show(): void {
  const here = level();
  byId('nothing').hidden = here !== undefined;
  stage.hidden = here === undefined;
  if (here === undefined) return;
  svg.replaceChildren(heads(), draw(here.drawing, here.prefix, direction));
  svg.setAttribute('aria-label', `Graph of ${here.name}, ${here.drawing.nodes.length} steps`);
  const first = here.drawing.nodes.find((one) => one.id === here.chosen) ?? here.drawing.nodes[0];
  if (first !== undefined) stepOf(first.id)?.setAttribute('tabindex', '0');
  minimap.draw(here.drawing);
  look(here.camera ?? begin(here.drawing, room(), first));
  showWay();
  refresh();
  markCursor(false);
}

/** The way from the whole workflow to the one that is looked at. */
function showWay(): void {
  const parts = levels.map((one, at) => {
    const last = at === levels.length - 1;
    const part = document.createElement(last ? 'strong' : 'button');
    part.textContent = one.name;
    if (!last) part.addEventListener('click', () => { leave(at + 1); });
    return part;
  });
  byId('way').replaceChildren(...parts.flatMap((part, at) => (at === 0 ? [part] : ['›', part])));
}

/** Show how all steps go, and what is wrong with them. */
function refresh(only?: string): void {
  const now = Date.now();
  for (const step of steps()) {
    const { id, path } = step.dataset;
    const node = id === undefined ? undefined : nodeOf(id);
    if (node === undefined || path === undefined || (only !== undefined && only !== path)) continue;
    const going = progress.steps.get(path);
    showGoing(step, going, now);
    minimap.colour(node.id, going?.status ?? '');
    showProblems(step, problems[path]);
    step.setAttribute('aria-label', nameOf(node, going, problems[path], now));
  }
  const { summary } = progress;
  const run = byId('run');
  run.textContent = summary === undefined ? '' : told(summary);
  run.dataset.status = summary?.status ?? '';
}

function choose(id: string, focus = true): void {
  const here = level();
  if (here === undefined) return;
  here.chosen = id;
  for (const step of steps()) step.setAttribute('tabindex', step.dataset.id === id ? '0' : '-1');
  const node = nodeOf(id);
  if (node !== undefined) look(reveal(camera, node, room()));
  if (focus) stepOf(id)?.focus({ preventScroll: true });
}

/** Show which step the editor's cursor is in, and have it in sight if it has moved. */
function markCursor(moved: boolean): void {
  const prefix = level()?.prefix ?? '';
  const inside = cursor?.startsWith(prefix) ? cursor.slice(prefix.length).split('.')[0] : undefined;
  for (const step of steps()) step.classList.toggle('here', step.dataset.id === inside);
  for (const arrow of svg.querySelectorAll<SVGElement>('.arrow')) {
    arrow.classList.toggle('near', inside !== undefined && (arrow.dataset.source === inside || arrow.dataset.target === inside));
  }
  const node = inside === undefined ? undefined : nodeOf(inside);
  if (moved && node !== undefined && !svg.contains(document.activeElement)) look(reveal(camera, node, room()));
}

function enter(id: string): void {
  const node = nodeOf(id);
  if (node === undefined) return;
  const path = pathOf(node);
  const file = files.get(path);
  if (node.child !== undefined) push(node.id, path, node.child);
  else if (file !== undefined) push(node.id, path, file);
  else if (node.childUri !== undefined) {
    wanted = path;
    say({ kind: 'enter', path, uri: node.childUri });
  }
}

function push(name: string, path: string, drawing: Drawing): void {
  const first = drawing.nodes[0]?.id;
  levels.push({ name, prefix: `${path}.`, drawing: flat(drawing), ...(first === undefined ? {} : { chosen: first }) });
  show();
  if (first !== undefined) choose(first);
}

/** Steps of an inner drawing, with paths as if it stood alone. */
function flat(drawing: Drawing): Drawing {
  return { ...drawing, nodes: drawing.nodes.map((node) => ({ ...node, path: node.id })) };
}

/** Look at an outer workflow again: keep so many levels. */
function leave(keep: number): void {
  if (keep >= levels.length || keep < 1) return;
  levels = levels.slice(0, keep);
  show();
  const chosen = level()?.chosen;
  if (chosen !== undefined) choose(chosen);
}

function open(id: string, focus: boolean): void {
  const node = nodeOf(id);
  if (node === undefined) return;
  choose(id, !focus);
  say({ kind: 'open', path: pathOf(node), focus });
}

function openOrEnter(id: string, focus: boolean): void {
  const node = nodeOf(id);
  if (node?.child !== undefined || node?.childUri !== undefined) enter(id);
  else open(id, focus);
}

/** Take a new drawing of the whole in, and stay where the user is as far as that is still there. */
function renew(root: Level): void {
  const before = levels;
  const again = direction === shownIn && before[0] !== undefined;
  levels = [{ ...root, ...(again && before[0]?.camera ? { camera: before[0].camera } : {}), ...(before[0]?.chosen ? { chosen: before[0].chosen } : {}) }];
  for (const old of before.slice(1)) {
    const above = levels.at(-1);
    const id = old.prefix.slice(above?.prefix.length ?? 0, -1);
    const node = above?.drawing.nodes.find((one) => one.id === id);
    const drawing = node?.child ?? files.get(old.prefix.slice(0, -1));
    if (node === undefined || drawing === undefined) break;
    levels.push({ ...old, drawing: flat(drawing), ...(again ? {} : { camera: begin(drawing, room(), drawing.nodes[0]) }) });
  }
  shownIn = direction;
  const focused = svg.contains(document.activeElement);
  show();
  if (focused && level()?.chosen !== undefined) choose(level()?.chosen ?? '');
}
window.addEventListener('message', ({ data }: MessageEvent<ToPage>) => {
  switch (data.kind) {
    case 'graph': {
      const { graph } = data;
      direction = data.direction;
      problems = data.problems;
      byId('direction').textContent = direction === 'down' ? '⇅' : '⇄';
      byId('direction').setAttribute('aria-label', direction === 'down' ? 'Layers from the top down' : 'Layers from left to right');
      vscode.setState({ ...vscode.getState(), uri: graph.uri });
      progress.read(graph, graph.run);
      renew({ name: graph.name, prefix: '', drawing: graph });
      return;
    }
    case 'nothing':
      levels = [];
      byId('nothing').textContent = data.words;
      show();
      return;
    case 'problems':
      problems = data.problems;
      refresh();
      return;
    case 'cursor':
      cursor = data.path;
      markCursor(true);
      return;
    case 'child': {
      files.set(data.path, data.drawing);
      const at = levels.findIndex((one) => one.prefix === `${data.path}.`);
      const there = levels[at];
      if (there !== undefined) {
        levels[at] = { ...there, drawing: flat(data.drawing) };
        show();
      } else if (wanted === data.path) {
        wanted = undefined;
        push(data.path.split('.').at(-1) ?? data.path, data.path, data.drawing);
      }
      return;
    }
    case 'event': {
      const path = progress.take(data.event, Date.now());
      if (path) refresh(path === '*' ? undefined : path);
      return;
    }
  }
});

new ResizeObserver(() => {
  look(camera);
}).observe(stage);

// How long running steps take, while they do.
setInterval(() => {
  if (!progress.summary?.running) return;
  for (const [path, going] of progress.steps) {
    if (going.status === 'running') refresh(path);
  }
}, 500);

function idOf(target: EventTarget | null): string | undefined {
  return target instanceof Element ? target.closest<SVGGElement>('g.step')?.dataset.id : undefined;
}

svg.addEventListener('click', (event) => {
  const id = idOf(event.target);
  if (id === undefined || moved) return;
  if (event.target instanceof Element && event.target.closest('.enter')) enter(id);
  else open(id, false);
});
svg.addEventListener('dblclick', (event) => {
  const id = idOf(event.target);
  if (id !== undefined) openOrEnter(id, true);
});

const ARROWS = new Set(['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Home', 'End']);
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const id = idOf(document.activeElement);
  const here = level();
  if (id !== undefined && here !== undefined && ARROWS.has(event.key)) choose(towards(here.drawing, id, event.key as Arrow, direction));
  else if (id !== undefined && event.key === 'Enter') open(id, true);
  else if (id !== undefined && event.key === ' ') openOrEnter(id, false);
  else if (event.key === 'Escape' || event.key === 'Backspace') leave(levels.length - 1);
  else if (event.key === '+' || event.key === '=') zoom(1.25);
  else if (event.key === '-') zoom(0.8);
  else if (event.key === '0') showAll();
  else return;
  event.preventDefault();
});

function zoom(factor: number): void {
  const { width, height } = room();
  look(zoomAt(camera, factor, width / 2, height / 2));
}

function showAll(): void {
  const here = level();
  if (here !== undefined) look(fit(here.drawing, room()));
}

stage.addEventListener('wheel', (event) => {
  event.preventDefault();
  if (event.ctrlKey || event.metaKey) look(zoomAt(camera, Math.exp(-event.deltaY / 200), event.offsetX, event.offsetY));
  else look({ ...camera, x: camera.x - (event.shiftKey ? event.deltaY : event.deltaX), y: camera.y - (event.shiftKey ? 0 : event.deltaY) });
}, { passive: false });

let moved = false;
stage.addEventListener('pointerdown', (down) => {
  moved = false;
  if (down.button !== 0) return;
  const start = camera;
  const move = (event: PointerEvent) => {
    const [x, y] = [event.clientX - down.clientX, event.clientY - down.clientY];
    if (!moved && Math.hypot(x, y) < 4) return;
    if (!moved) stage.setPointerCapture(down.pointerId);
    moved = true;
    look({ ...start, x: start.x + x, y: start.y + y });
  };
  stage.addEventListener('pointermove', move);
  for (const end of ['pointerup', 'pointercancel'] as const) {
    stage.addEventListener(end, () => { stage.removeEventListener('pointermove', move); }, { once: true });
  }
});

byId('in').addEventListener('click', () => { zoom(1.25); });
byId('out').addEventListener('click', () => { zoom(0.8); });
byId('fit').addEventListener('click', showAll);
byId('direction').addEventListener('click', () => { say({ kind: 'direction', direction: direction === 'down' ? 'right' : 'down' }); });
byId('critical').addEventListener('click', () => { markCritical(byId('critical').getAttribute('aria-pressed') !== 'true'); });
byId('export').addEventListener('click', () => {
  const here = level();
  if (here !== undefined) say({ kind: 'export', svg: standalone(svg, here.drawing, here.name) });
});

function markCritical(on: boolean): void {
  byId('critical').setAttribute('aria-pressed', String(on));
  svg.classList.toggle('plain', !on);
  vscode.setState({ ...vscode.getState(), critical: on });
}

markCritical(vscode.getState()?.critical ?? true);
say({ kind: 'ready' });
