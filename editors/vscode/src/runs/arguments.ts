// What a command is about, from the many forms in which VS Code hands that over.

/** The one argument of the server's commands. */
export interface CommandArgument {
  readonly uri?: string;
  readonly runId?: string;
  readonly folder?: string;
  readonly [other: string]: unknown;
}

/**
 * Return the argument of a command: an object as lenses have it stays as it is; menus of the editor give a URI, the tree of runs one
 * of its items; a text is what the command wants most.
 */
export function asArgument(given: readonly unknown[]): CommandArgument {
  const [first] = given;
  if (typeof first === 'string') return first.includes(':') ? { uri: first } : { runId: first };
  if (typeof first !== 'object' || first === null) return {};
  if (isUri(first)) return { uri: first.toString() };
  if ('run' in first && typeof first.run === 'object' && first.run !== null) {
    const { runId, folder, uri } = first.run as Record<string, unknown>;
    return { ...(typeof runId === 'string' && { runId }), ...(typeof folder === 'string' && { folder }), ...(typeof uri === 'string' && { uri }) };
  }
  return first as CommandArgument;
}

function isUri(value: object): value is { toString(): string } & { readonly scheme: string } {
  return 'scheme' in value && 'fsPath' in value;
}
