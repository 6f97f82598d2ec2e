import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ago, duration, money } from '../src/words';
import { schemaFor } from '../src/schema';
import { fileName, starter, wrongName } from '../src/starter';

test('money', () => {
  for (const [usd, words] of [[0, '$0'], [0.0000004, '<$0.000001'], [0.00001234, '$0.000012'], [0.0005, '$0.0005'], [0.0123, '$0.01'], [1.5, '$1.50'], [1234.5, '$1235']] as const) {
    assert.equal(money(usd), words);
  }
});

test('durations', () => {
  for (const [ms, words] of [[0.2, '0 ms'], [12.4, '12 ms'], [999, '999 ms'], [1500, '1.5 s'], [9960, '10 s'], [59_960, '1 min 0 s'], [61_000, '1 min 1 s'], [3_720_000, '1 h 2 min']] as const) {
    assert.equal(duration(ms), words);
  }
});

test('how long ago', () => {
  const now = 1_000_000_000;
  for (const [seconds, words] of [[-5, 'just now'], [59, 'just now'], [60, '1 min ago'], [7200, '2 h ago'], [90_000, 'yesterday'], [200_000, '2 days ago']] as const) {
    assert.equal(ago(now - seconds * 1000, now), words);
  }
});

test('which schema a file has', () => {
  assert.equal(schemaFor('file:///w/a.loom.yaml'), 'agentloom://schema/workflow');
  assert.equal(schemaFor('file:///w/A.AgentLoom.YML?x=1'), 'agentloom://schema/workflow');
  assert.equal(schemaFor('file:///w/critic.agent.yaml'), 'agentloom://schema/agent');
  assert.equal(schemaFor('file:///w/compose.yaml'), undefined);
});

test('names of new workflows', () => {
  assert.equal(wrongName(''), undefined);
  assert.equal(wrongName('weekly-report_2'), undefined);
  for (const name of ['2nd', 'a b', '../x', 'ä']) assert.notEqual(wrongName(name), undefined);
  assert.equal(fileName('x'), 'x.loom.yaml');
  assert.match(starter('x'), /^name: x\n/);
});
