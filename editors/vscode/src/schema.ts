// Which schema a file has, by its name.

export const SCHEMA_ID = 'agentloom';

/** Return the address of a file's schema, for the YAML extension; undefined for files that are none of ours by their name. */
export function schemaFor(resource: string): string | undefined {
  const path = resource.replace(/[?#].*$/, '');
  if (/\.(loom|agentloom)\.ya?ml$/i.test(path)) return `${SCHEMA_ID}://schema/workflow`;
  if (/\.agent\.ya?ml$/i.test(path)) return `${SCHEMA_ID}://schema/agent`;
  return undefined;
}
