import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Run, RunDetails } from '../src/protocol';
import { asArgument } from '../src/runs/arguments';
import { describe } from '../src/runs/describe';
import { OngoingRuns } from '../src/runs/ongoing';
import { comparable, page } from '../src/runs/result';

const RUN: Run = {
  runId: '3f9c2a7b1e04', workflow: 'publish', status: 'success', ongoing: false, uri: 'file:///w/p.loom.yaml', file: '/w/p.loom.yaml', folder: '/w/.agentloom/checkpoints',
  created: '2026-11-30T10:00:00Z', updated: '2026-11-30T10:01:00Z', costUsd: 0.0036, stepsDone: 4, steps: 4, pausedStep: null, resumable: false, error: null,
};
const NOW = Date.parse('2026-11-30T10:06:00Z');

test('a run in a line, with what can be done', () => {
  const seen = (more: Partial<Run>) => describe({ ...RUN, ...more }, NOW);
  assert.equal(seen({}).description, 'success · $0.0036 · 5 min ago · 3f9c2a');
  assert.equal(seen({}).context, 'run kept');
  const paused = seen({ status: 'paused', pausedStep: 'ok', resumable: true });
  assert.match(paused.description, /^waits at ok · /);
  assert.equal(paused.context, 'run paused kept');
  assert.equal(seen({ status: 'budget_exceeded', resumable: true }).context, 'run resumable kept');
  assert.match(seen({ status: 'budget_exceeded' }).description, /^over budget/);
  const going = seen({ status: 'running', ongoing: true, stepsDone: 1, updated: null, created: null });
  assert.equal(going.description, 'running · 1 of 4 steps · $0.0036 · 3f9c2a');
  assert.equal(going.context, 'run ongoing');
  assert.match(seen({ error: 'no key' }).tooltip, /no key$/);
});

test('what commands are about', () => {
  assert.deepEqual(asArgument([]), {});
  assert.deepEqual(asArgument([undefined, {}]), {});
  assert.deepEqual(asArgument(['file:///w/a.yaml']), { uri: 'file:///w/a.yaml' });
  assert.deepEqual(asArgument(['3f9c2a']), { runId: '3f9c2a' });
  assert.deepEqual(asArgument([{ uri: 'file:///x', until: 'b' }]), { uri: 'file:///x', until: 'b' });
  assert.deepEqual(asArgument([{ scheme: 'file', fsPath: '/w/a', toString: () => 'file:///w/a' }, { groupId: 0 }]), { uri: 'file:///w/a' });
  assert.deepEqual(asArgument([{ run: RUN, label: 'publish' }]), { runId: RUN.runId, folder: RUN.folder, uri: RUN.uri });
  assert.deepEqual(asArgument([{ run: { ...RUN, uri: null } }]), { runId: RUN.runId, folder: RUN.folder });
});

test('runs that go on', () => {
  const runs = new OngoingRuns();
  const take = (runId: string, event: string, more: object = {}) => runs.take({ runId, uri: 'u', event: { event, run_id: runId, ...more } });
  assert.equal(take('a', 'step_finished', { step: 's' }), false); // its beginning was missed
  assert.equal(take('a', 'run_started', { workflow: 'w', steps: 3 }), true);
  assert.equal(take('b', 'run_started', { steps: 1 }), true);
  assert.equal(take('a', 'step_started', { step: 's' }), false);
  assert.equal(take('a', 'step_finished', { step: 's', cost_usd: 0.5 }), true);
  assert.equal(take('a', 'step_finished', { step: 'sub.s', cost_usd: 9 }), false);
  assert.equal(take('a', 'step_skipped', { step: 't' }), true);
  assert.deepEqual(runs.all.map((one) => [one.workflow, one.done, one.steps, one.costUsd]), [['w', 2, 3, 0.5], ['b', 0, 1, 0]]);
  assert.equal(take('a', 'run_ended'), true);
  assert.equal(take('a', 'run_ended'), false);
  runs.clear();
  assert.equal(runs.all.length, 0);
});

const DETAILS: RunDetails = {
  ...RUN,
  results: {
    draft: { status: 'success', output: 'Fence: ```` and more', duration_ms: 1500, cost_usd: 0.0012, token_usage: { total_tokens: 80 }, model: 'gpt-4o-mini', provider: 'mock' },
    b: { status: 'failed', error: '429: slow down', duration_ms: 20, cost_usd: 0, token_usage: null },
    a: { status: 'skipped', error: null },
  },
  state: { topic: 'bees', list: [1, 2], steps: { draft: {} } },
  checkpoint: null,
  output: 'printed\n',
  problem: null,
};

test('what came of a run, as a page', () => {
  const shown = page(DETAILS);
  assert.match(shown, /^# publish\n/);
  assert.match(shown, /\| ✓ \| `draft` \| 1\.5\u00a0s \| 80 \| \$0\.0012 \| gpt-4o-mini\u00a0\(mock\) \|/);
  assert.match(shown, /\| ✗\u00a0failed \| `b` \| 20\u00a0ms \| {2}\| {2}\| {2}\|/);
  assert.match(shown, /\| –\u00a0skipped \| `a` \| {2}\|/);
  assert.match(shown, /\n`{5}text\nFence: ```` and more\n`{5}\n/);
  assert.match(shown, /### b: failed\n\n```text\n429: slow down\n```/);
  assert.match(shown, /\*\*list\*\*\n\n```text\n\[\n {2}1,\n {2}2\n\]\n```/);
  assert.doesNotMatch(shown, /\*\*steps\*\*/);
  assert.match(shown, /## What the process printed\n\n```text\nprinted\n```/);
});

test('two runs that went the same way are the same text', () => {
  const other = { ...DETAILS, runId: 'ffffffffffff', created: null, updated: null, costUsd: 1, results: { a: DETAILS.results.a, b: DETAILS.results.b, draft: { ...DETAILS.results.draft, duration_ms: 1 } } };
  assert.equal(comparable(other as RunDetails), comparable(DETAILS));
  assert.notEqual(comparable({ ...DETAILS, state: { topic: 'wasps' } }), comparable(DETAILS));
});
