import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Candidate, candidates, compare, explain, judge, type Places, type Trial } from '../src/server/find';

const NOTHING: Places = { path: '', interpreter: '', chosen: undefined, environments: [] };
const commands = (found: readonly Candidate[]) => found.map((one) => [one.command, ...one.before].join(' '));

test('a setting stands alone', () => {
  assert.deepEqual(commands(candidates({ ...NOTHING, path: '/x/agentloom', interpreter: '/y/python', chosen: '/z/python' })), ['/x/agentloom']);
  assert.deepEqual(commands(candidates({ ...NOTHING, interpreter: '/y/python', chosen: '/z/python' })), ['/y/python -m agentloom']);
});

test('the Python extension comes before environments of the folder, the search path last, and nothing is tried twice', () => {
  const found = candidates({ ...NOTHING, chosen: '/w/.venv/bin/python', environments: ['/w/.venv/bin/python', '/v/venv/bin/python'] });
  assert.deepEqual(commands(found), ['/w/.venv/bin/python -m agentloom', '/v/venv/bin/python -m agentloom', 'agentloom']);
});

test('what a process did is judged', () => {
  const done = { code: 0, stdout: '', stderr: '' };
  assert.deepEqual(judge({ ...done, stdout: 'agentloom 0.6.0\n' }), { end: 'found', version: '0.6.0' });
  assert.deepEqual(judge({ ...done, stdout: 'agentloom, version 0.10.2.dev3\n' }), { end: 'found', version: '0.10.2.dev3' });
  assert.deepEqual(judge({ ...done, stdout: 'warning: slow disk\nagentloom 0.4.0\n' }), { end: 'old', version: '0.4.0' });
  assert.deepEqual(judge({ ...done, code: null, error: 'ENOENT' }), { end: 'no-program' });
  assert.deepEqual(judge({ ...done, code: 1, stderr: '/x/python: No module named agentloom\n' }), { end: 'no-agentloom' });
  const broken = 'Traceback (most recent call last):\nModuleNotFoundError: No module named \'agentloom.cli\'\n';
  assert.deepEqual(judge({ ...done, code: 1, stderr: broken }), { end: 'broken', words: "ModuleNotFoundError: No module named 'agentloom.cli'" });
  assert.deepEqual(judge({ ...done, code: 3 }), { end: 'broken', words: 'it ended with 3' });
  assert.deepEqual(judge({ ...done, code: null }), { end: 'broken', words: 'it gave no answer' });
  assert.deepEqual(judge({ ...done, stdout: 'something else 1.0\n' }), { end: 'broken', words: 'it ended with 0' });
  assert.deepEqual(judge({ ...done, code: null, error: 'EACCES' }), { end: 'broken', words: 'EACCES' });
});

test('versions are compared by their numbers', () => {
  assert.ok(compare('0.10.0', '0.6.0') > 0);
  assert.ok(compare('0.5.9', '0.6') < 0);
  assert.equal(compare('1', '1.0.0'), 0);
  assert.equal(compare('0.6.0.dev1', '0.6.0'), 0);
});

test('why there is no server, in words', () => {
  const tell = (places: Partial<Places>, ...trials: Trial[]) =>
    explain(candidates({ ...NOTHING, ...places }).map((one, at) => [one, trials[at] ?? { end: 'no-program' }] as const));
  assert.equal(tell({}), 'agentloom is not installed: it is not on the search path');
  assert.equal(
    tell({ chosen: '/v/bin/python' }, { end: 'no-agentloom' }),
    'agentloom is not installed: it is not on the search path, nor in the environment of `/v/bin/python`',
  );
  assert.equal(tell({ path: '/x' }), 'there is no program `/x` (as the setting `agentloom.server.path` says)');
  assert.equal(tell({ interpreter: '/p' }), 'there is no interpreter `/p` (as the setting `agentloom.interpreter` says)');
  assert.equal(tell({ interpreter: '/p' }, { end: 'no-agentloom' }), 'agentloom is not installed for `/p` (as the setting `agentloom.interpreter` says)');
  assert.equal(
    tell({}, { end: 'old', version: '0.4.0' }),
    'agentloom 0.4.0, `agentloom` (on the search path), is too old for this extension, which needs 0.6.0 or later',
  );
});
