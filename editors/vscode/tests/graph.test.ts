import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allNodes, nodeAt, problemsOf } from '../src/graph/places';
import { html } from '../src/graph/html';
import type { Drawing, GraphEdge, GraphNode } from '../src/protocol';
import { begin, centre, fit, LEAST, MOST, reveal, zoomAt } from '../src/webview/camera';
import { caption, Progress, told } from '../src/webview/progress';
import { towards } from '../src/webview/steering';

function node(id: string, layer: number, x: number, lines: readonly [number, number], more: Partial<GraphNode> = {}): GraphNode {
  const range = { start: { line: lines[0], character: 4 }, end: { line: lines[1], character: 10 } };
  const box = { x, y: layer * 100, width: 80, height: 44 };
  return { id, type: 'llm_call', layer, detail: '', critical: false, faulty: false, path: id, range, nameRange: range, run: null, ...box, ...more };
}

function edge(source: string, target: string): GraphEdge {
  return { source, target, kind: 'plain', label: '', critical: false, path: '' };
}

const inner: Drawing = { name: 'sub', width: 100, height: 300, nodes: [node('one', 1, 0, [12, 14], { path: 'c.one' })], edges: [] };
const drawing: Drawing = {
  name: 'w',
  width: 400,
  height: 400,
  nodes: [node('a', 1, 0, [3, 5]), node('b', 1, 200, [7, 8]), node('c', 2, 210, [10, 20], { child: inner }), node('d', 3, 0, [22, 23])],
  edges: [edge('a', 'd'), edge('a', 'c'), edge('b', 'c'), edge('c', 'd')],
};

test('the innermost step at a place', () => {
  const at = (line: number, character = 0) => nodeAt(drawing, { line, character })?.path;
  assert.deepEqual([...allNodes(drawing)].map((one) => one.path), ['a', 'b', 'c', 'c.one', 'd']);
  assert.equal(at(3), 'a');
  assert.equal(at(5, 10), 'a');
  assert.equal(at(5, 11), undefined);
  assert.equal(at(6), undefined);
  assert.equal(at(11), 'c');
  assert.equal(at(13), 'c.one');
});

test('problems count for their step and those around it', () => {
  const place = (line: number, error: boolean) => ({ range: { start: { line, character: 0 }, end: { line, character: 3 } }, error });
  assert.deepEqual(problemsOf(drawing, [place(13, true), place(11, false), place(6, true), place(3, false)]), {
    a: { errors: 0, warnings: 1 },
    c: { errors: 1, warnings: 1 },
    'c.one': { errors: 1, warnings: 0 },
  });
});

test('arrow keys follow dependencies and layers, in both directions', () => {
  assert.equal(towards(drawing, 'a', 'ArrowDown', 'down'), 'c'); // the nearer layer of the two that are connected
  assert.equal(towards(drawing, 'd', 'ArrowUp', 'down'), 'c');
  assert.equal(towards(drawing, 'a', 'ArrowRight', 'down'), 'b');
  assert.equal(towards(drawing, 'b', 'ArrowRight', 'down'), 'b');
  assert.equal(towards(drawing, 'a', 'ArrowUp', 'down'), 'a');
  assert.equal(towards(drawing, 'a', 'ArrowRight', 'right'), 'c');
  assert.equal(towards(drawing, 'c', 'Home', 'down'), 'a');
  assert.equal(towards(drawing, 'c', 'End', 'down'), 'd');
  assert.equal(towards(drawing, 'gone', 'ArrowDown', 'down'), 'a');
});

test('zooming leaves the point under the mouse where it is, within bounds', () => {
  const camera = { x: 30, y: -20, zoom: 0.5 };
  const next = zoomAt(camera, 1.6, 200, 100);
  assert.ok(Math.abs((200 - next.x) / next.zoom - (200 - camera.x) / camera.zoom) < 1e-9);
  assert.equal(zoomAt(camera, 1e9, 0, 0).zoom, MOST);
  assert.equal(zoomAt(camera, 1e-9, 0, 0).zoom, LEAST);
});

test('what fits is in the middle; what does not begins where it can be read', () => {
  const stage = { width: 500, height: 300 };
  assert.deepEqual(fit({ width: 100, height: 100 }, stage), { zoom: 1, x: 200, y: 100 });
  assert.equal(fit({ width: 1000, height: 100 }, stage).zoom, 0.5);
  const first = { x: 900, y: 0, width: 80, height: 44 };
  const camera = begin({ width: 4000, height: 2000 }, stage, first);
  assert.equal(camera.zoom, 0.75);
  assert.ok(camera.x + 900 * 0.75 > 0 && camera.x + 980 * 0.75 < 500);
  assert.equal(camera.y, 0);
  assert.deepEqual(centre(1, 0, 0, { width: 4000, height: 100 }, stage), { zoom: 1, x: 0, y: 100 });
});

test('a box comes into sight, and stays where it is when it is there', () => {
  const stage = { width: 500, height: 300 };
  const still = { x: 0, y: 0, zoom: 1 };
  assert.deepEqual(reveal(still, { x: 100, y: 100, width: 80, height: 44 }, stage), still);
  const moved = reveal(still, { x: 900, y: 100, width: 80, height: 44 }, stage);
  assert.equal(moved.x, 500 - 32 - 980);
  assert.equal(moved.y, 0);
});

test('a run, event by event', () => {
  const progress = new Progress();
  const event = (name: string, more: object = {}) => progress.take({ event: name, run_id: 'r', ...more }, 5000);
  assert.equal(event('run_started', { steps: 2 }), '*');
  assert.equal(event('step_started', { step: 'a' }), 'a');
  assert.equal(event('step_retrying', { step: 'a', attempt: 2, error: 'too many requests' }), 'a');
  assert.equal(caption(progress.steps.get('a') ?? assert.fail(), 7100), '2.1 s, attempt 3');
  assert.equal(event('step_delta', { step: 'a' }), '');
  event('step_finished', { step: 'a', status: 'success', duration_ms: 1200, cost_usd: 0.02 });
  assert.equal(caption(progress.steps.get('a') ?? assert.fail(), 0), '1.2 s · $0.02');
  event('step_finished', { step: 'c.one', status: 'success', cost_usd: 0.5 }); // it counts with its parent
  assert.equal(told(progress.summary ?? assert.fail()), 'step 2 of 2 · $0.02');
  event('step_started', { step: 'c' });
  event('run_ended', { status: 'cancelled' });
  assert.equal(progress.steps.get('c')?.status, 'cancelled');
  assert.equal(told(progress.summary ?? assert.fail()), 'cancelled · $0.02');
});

test('a drawing tells of the last run, and keeps what events told of files below', () => {
  const progress = new Progress();
  const run = { status: 'failed', durationMs: 40, costUsd: 0, tokens: 0, error: 'no' };
  const ran = { ...drawing, nodes: [node('a', 1, 0, [3, 5], { run })] };
  progress.take({ event: 'run_started', run_id: 'r', steps: 1 }, 0);
  progress.take({ event: 'step_finished', run_id: 'r', step: 'file.x', status: 'success' }, 0);
  progress.take({ event: 'run_ended', run_id: 'r', status: 'failed' }, 0);
  progress.read(ran, { runId: 'r', status: 'failed' });
  assert.deepEqual([...progress.steps.keys()].sort(), ['a', 'file.x']);
  assert.equal(caption(progress.steps.get('a') ?? assert.fail(), 0), '40 ms');
  progress.read(ran, { runId: 'another', status: 'failed' });
  assert.deepEqual([...progress.steps.keys()], ['a']);
  progress.read({ ...drawing, nodes: [node('a', 1, 0, [3, 5])] }, null);
  assert.equal(progress.summary, undefined);
  assert.equal(progress.steps.size, 0);
});

test('the page runs nothing but its own script', () => {
  const page = html('https://vs', 'N0nce', 'https://vs/graph.js', 'https://vs/graph.css');
  assert.match(page, /default-src 'none'; style-src https:\/\/vs; script-src 'nonce-N0nce'/);
  assert.equal([...page.matchAll(/<script/g)].length, 1);
  assert.doesNotMatch(page, /unsafe| style="| on\w+="/);
});
