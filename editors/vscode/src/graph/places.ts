// Steps of a graph and places of a text. Knows no VS Code.
import type { Drawing, GraphNode, Position, Range } from '../protocol';
import type { Problems } from './messages';

/** Yield the steps of a drawing and of the workflows written in place below it. */
export function* allNodes(drawing: Drawing): Generator<GraphNode> {
  for (const node of drawing.nodes) {
    yield node;
    if (node.child !== undefined) yield* allNodes(node.child);
  }
}

/** Return the innermost step at a place; undefined between steps. */
export function nodeAt(drawing: Drawing, place: Position): GraphNode | undefined {
  let found: GraphNode | undefined;
  for (const node of allNodes(drawing)) {
    if (within(node.range, place)) found = node; // children come behind their parents
  }
  return found;
}

function within({ start, end }: Range, place: Position): boolean {
  const line = start.line <= place.line && place.line <= end.line;
  // The dash and blanks before a step's first key are as good as the step.
  return line && (place.line < end.line || place.character <= end.character || start.line === end.line);
}

/** Count the problems of each step, by path; those of inner steps count for the outer ones, too. */
export function problemsOf(drawing: Drawing, found: readonly { readonly range: Range; readonly error: boolean }[]): Record<string, Problems> {
  const counts: Record<string, Problems> = {};
  for (const node of allNodes(drawing)) {
    const own = found.filter((one) => node.range.start.line <= one.range.start.line && one.range.start.line <= node.range.end.line);
    const errors = own.filter((one) => one.error).length;
    if (own.length > 0) counts[node.path] = { errors, warnings: own.length - errors };
  }
  return counts;
}
