// What came of a run, to be read: as a page, and as a text that can be compared with another run's.
import type { RunDetails, StepResult } from '../protocol';
import { duration, money } from '../words';

/** A run as a Markdown page. */
export function page(run: RunDetails): string {
  const results = Object.entries(run.results);
  const facts = [`**${said(run.status)}**`, money(run.costUsd), run.updated === null ? '' : new Date(run.updated).toLocaleString(), `run \`${run.runId}\``];
  const lines = [`# ${run.workflow || run.runId}`, '', facts.filter(Boolean).join(' · '), ''];
  if (run.problem !== null) lines.push(`> ${run.problem}`, '');
  if (run.error) lines.push(...fenced(run.error), '');
  if (results.length > 0) {
    lines.push('## Steps', '', '| | step | took | tokens | cost | model |', '|---|---|--:|--:|--:|---|');
    for (const [path, result] of results) lines.push(row(path, result));
    lines.push('');
  }
  for (const [path, result] of results) {
    if (result.error) lines.push(`### ${path}: ${said(result.status)}`, '', ...fenced(result.error), '');
    else if (result.output !== undefined && result.output !== null && result.output !== '') lines.push(`### ${path}`, '', ...fenced(text(result.output)), '');
  }
  const state = stateOf(run);
  if (state.length > 0) {
    lines.push('## State', '');
    for (const [key, value] of state) lines.push(`**${key}**`, '', ...fenced(text(value)), '');
  }
  if (run.output.trim()) lines.push('## What the process printed', '', ...fenced(run.output.trimEnd()), '');
  return lines.join('\n');
}

/** The state without the results of steps, which are told as such. */
function stateOf(run: RunDetails): [string, unknown][] {
  return Object.entries(run.state).filter(([key]) => key !== 'steps');
}

const MARKS: Readonly<Record<string, string>> = { success: '✓', failed: '✗', timeout: '✗', budget_exceeded: '✗', skipped: '–', paused: '‖', running: '▶' };

function row(path: string, result: StepResult): string {
  const skipped = result.status === 'skipped';
  const mark = MARKS[result.status] ?? '';
  const tokens = result.token_usage?.total_tokens ?? 0;
  const cells = [
    result.status === 'success' ? mark : `${mark} ${said(result.status)}`.trim(),
    `\`${path}\``,
    skipped || result.duration_ms === undefined ? '' : duration(result.duration_ms),
    tokens === 0 ? '' : String(tokens),
    result.cost_usd ? money(result.cost_usd) : '',
    [result.model, result.provider && `(${result.provider})`].filter(Boolean).join(' '),
  ];
  return `| ${cells.map((cell) => cell.replaceAll(' ', '\u00a0')).join(' | ')} |`;
}

/**
 * A run as a text that differs from another run's only where they went another way: no times, no ids, keys of results and state in
 * the order of the alphabet.
 */
export function comparable(run: RunDetails): string {
  const lines = [`workflow: ${run.workflow}`, `status: ${said(run.status)}`, ''];
  for (const [path, result] of Object.entries(run.results).sort(byName)) {
    lines.push(`step ${path}: ${said(result.status)}${result.model ? `, ${result.model}` : ''}`);
    if (result.error) lines.push(...indented(result.error));
    if (result.output !== undefined && result.output !== null) lines.push(...indented(text(result.output)));
    lines.push('');
  }
  for (const [key, value] of stateOf(run).sort(byName)) lines.push(`state ${key}:`, ...indented(text(value)), '');
  return lines.join('\n');
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function said(status: string): string {
  return status.replaceAll('_', ' ');
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

function indented(value: string): string[] {
  return value.split('\n').map((line) => `  ${line}`.trimEnd());
}

/** A text in a fence that is longer than any in it. */
function fenced(value: string): string[] {
  const longest = Math.max(2, ...[...value.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return [`${fence}text`, value, fence];
}
