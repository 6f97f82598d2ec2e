// A drawing as SVG elements. What may change while a workflow runs has an element of its own.
import type { Direction, Drawing, GraphEdge, GraphNode } from '../protocol';
import type { Problems } from '../graph/messages';
import { caption, type Going } from './progress';

const NAMESPACE = 'http://www.w3.org/2000/svg';
const MOST = { name: 34, detail: 44, label: 40 };

/** The fonts of graph.css at full size, and the room that words leave on each side of a box. */
const FONTS = { name: '600 13px', detail: '11px', label: '11px' };
const MARGIN = { name: 5, detail: 5, label: 4 };

type Attributes = Readonly<Record<string, string | number>>;

export function element<K extends keyof SVGElementTagNameMap>(name: K, attributes: Attributes, ...children: (Node | string)[]): SVGElementTagNameMap[K] {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** Return a whole drawing, arrows leading down or to the right; steps are `g[data-id]`. `prefix` stands before the paths of its steps. */
export function draw(drawing: Drawing, prefix: string, direction: Direction): SVGGElement {
  const edges = drawing.edges.map(arrow);
  const words = drawing.edges.flatMap(label);
  const sources = new Set(drawing.edges.map((edge) => edge.source));
  const nodes = drawing.nodes.map((node) => box(node, `${prefix}${node.path}`, direction === 'down' && sources.has(node.id)));
  return element('g', { id: 'drawing' }, ...edges, ...words, ...nodes);
}

/** The heads of arrows. */
export function heads(): SVGDefsElement {
  const head = (kind: string) =>
    element('marker', { id: `head-${kind}`, viewBox: '0 0 10 10', refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse', markerUnits: 'userSpaceOnUse' },
      element('path', { class: `head ${kind}`, d: 'M0 1 L10 5 L0 9 z' }));
  return element('defs', {}, ...['plain', 'branch', 'cycle', 'critical'].map(head));
}

function arrow(edge: GraphEdge): SVGElement {
  const kind = edge.critical && edge.kind === 'plain' ? 'critical' : edge.kind;
  return element('path', {
    class: `arrow ${edge.kind}${edge.critical ? ' critical' : ''}`,
    d: edge.path,
    'marker-end': `url(#head-${kind})`,
    'data-source': edge.source,
    'data-target': edge.target,
  });
}

function label(edge: GraphEdge): SVGElement[] {
  if (edge.label_at === undefined) return [];
  const [x, y] = edge.label_at;
  const shown = cut(edge.label, MOST.label);
  const width = Math.min(shown.length * 6.1 + 12, widthOf(shown, 'label') + 2 * MARGIN.label);
  return [
    element('g', { class: 'label' },
      element('title', {}, edge.label),
      element('rect', { x: x - width / 2, y: y - 9, width, height: 18, rx: 4 }),
      words('label', shown, x, y + 4, width)),
  ];
}

/** `beside`: an arrow leaves the box where its caption would stand. */
function box(node: GraphNode, path: string, beside: boolean): SVGElement {
  const middle = node.x + node.width / 2;
  const opens = node.child !== undefined || node.childUri !== undefined;
  const slant = node.type === 'router' ? 8 : 0;
  const classes = ['step', node.type, node.critical ? 'critical' : '', opens ? 'opens' : ''].filter(Boolean).join(' ');
  return element('g', { class: classes, 'data-id': node.id, 'data-path': path, role: 'button', tabindex: -1 },
    element('title', {}, `${node.id} (${node.type})${node.detail === node.type ? '' : `\n${node.detail}`}${opens ? '\nDouble-click opens the workflow inside' : ''}`),
    ...shape(node),
    words('name', cut(node.id, MOST.name), middle, node.y + 19, node.width - slant),
    words('detail', cut(node.detail || node.type, MOST.detail), middle, node.y + 34, node.width - slant),
    element('g', { class: 'mark', transform: `translate(${node.x + node.width} ${node.y})` }),
    element('g', { class: 'going', transform: `translate(${node.x} ${node.y})` }),
    element('text', { class: beside ? 'caption beside' : 'caption', x: beside ? middle + 7 : middle, y: node.y + node.height + 12 }),
    ...(opens ? [element('g', { class: 'enter', transform: `translate(${node.x + node.width - 2} ${node.y + node.height - 2})` }, element('circle', { r: 8 }), element('path', { d: 'M-4 0H4M0 -4V4' }))] : []),
  );
}

/** A line with a place to keep to. `--room` tells graph.css how many times its size would fit: places are measured for common letters, and others may be wider. */
function words(kind: keyof typeof FONTS, shown: string, x: number, y: number, width: number): SVGElement {
  const made = element('text', { class: kind, x, y }, shown);
  made.style.setProperty('--room', (Math.max(1, width - 2 * MARGIN[kind]) / Math.max(1, widthOf(shown, kind))).toFixed(3));
  return made;
}

const ruler = document.createElement('canvas').getContext('2d');

/** How many pixels wide a text is in the font of the editor. */
function widthOf(text: string, kind: keyof typeof FONTS): number {
  if (ruler === null) return 0;
  ruler.font = `${FONTS[kind]} ${getComputedStyle(document.documentElement).getPropertyValue('--vscode-font-family') || 'sans-serif'}`;
  return ruler.measureText(text).width;
}

function shape(node: GraphNode): SVGElement[] {
  const { x, y, width, height } = node;
  if (node.type === 'router') {
    const points = [[x, y + height / 2], [x + 12, y], [x + width - 12, y], [x + width, y + height / 2], [x + width - 12, y + height], [x + 12, y + height]];
    return [element('polygon', { class: 'box', points: points.map((point) => point.join(',')).join(' ') })];
  }
  const frame = element('rect', { class: 'box', x, y, width, height, rx: node.type === 'approval_gate' ? 20 : 7 });
  if (node.type !== 'subworkflow') return [frame];
  return [frame, element('path', { class: 'box', d: `M${x + 6} ${y}V${y + height}M${x + width - 6} ${y}V${y + height}` })];
}

function cut(text: string, most: number): string {
  const shown = Array.from(text.replace(/\s+/g, ' ').trim());
  return shown.length <= most ? shown.join('') : `${shown.slice(0, most - 1).join('')}…`;
}

const SIGNS: Readonly<Record<string, string>> = {
  success: 'M-3.5 0.2L-1 2.8L3.6 -2.6',
  failed: 'M-2.7 -2.7L2.7 2.7M2.7 -2.7L-2.7 2.7',
  timeout: 'M0 -3.4V0.3L2.6 2',
  budget_exceeded: 'M2 -2.4C0.6 -4 -2.4 -3.4 -2.2 -1.6C-2 0 2.2 0 2.2 1.7C2.2 3.5 -0.8 3.8 -2.2 2.4M0 -4.6V4.8',
  paused: 'M-1.6 -2.8V2.8M1.6 -2.8V2.8',
  skipped: 'M-3 0H3',
  cancelled: 'M-2.6 2.6L2.6 -2.6',
  running: 'M-1.5 -3L3 0L-1.5 3Z',
};

/** Show how a step goes. */
export function showGoing(step: SVGGElement, going: Going | undefined, now: number): void {
  const place = step.querySelector('.going');
  const words = step.querySelector('.caption');
  if (place === null || words === null) return;
  words.textContent = going === undefined ? '' : caption(going, now);
  if (step.dataset.status === (going?.status ?? '')) return;
  step.dataset.status = going?.status ?? '';
  place.replaceChildren();
  if (going !== undefined) {
    place.append(element('circle', { r: 8 }), element('path', { d: SIGNS[going.status] ?? SIGNS.failed ?? '' }));
    if (going.error !== null) place.append(element('title', {}, going.error));
  }
}

/** Show the problems of a step. */
export function showProblems(step: SVGGElement, problems: Problems | undefined): void {
  const mark = step.querySelector('.mark');
  const count = problems === undefined ? 0 : problems.errors || problems.warnings;
  step.dataset.problems = problems === undefined ? '' : problems.errors > 0 ? 'error' : 'warning';
  mark?.replaceChildren(...(count === 0 ? [] : [element('circle', { r: 8 }), element('text', { y: 3.5 }, count > 9 ? '9+' : String(count))]));
}

/** Say to those who hear what others see. */
export function nameOf(node: GraphNode, going: Going | undefined, problems: Problems | undefined, now: number): string {
  const parts = [node.id, node.detail || node.type, `layer ${node.layer}`];
  if (node.critical) parts.push('on the critical path');
  if (going !== undefined) parts.push(`${going.status.replaceAll('_', ' ')} ${caption(going, now)}`);
  if (problems?.errors) parts.push(`${problems.errors} errors`);
  else if (problems?.warnings) parts.push(`${problems.warnings} warnings`);
  return parts.join(', ');
}
