// The first text of a new workflow.

/** Say what is wrong with a name; undefined when nothing is. */
export function wrongName(name: string): string | undefined {
  if (!name) return undefined; // being typed
  return /^[A-Za-z][A-Za-z0-9_-]*$/.test(name) ? undefined : 'letters, digits, `-` and `_`, beginning with a letter';
}

/** Return the name of its file. */
export function fileName(name: string): string {
  return `${name}.loom.yaml`;
}

/** Return a workflow of two steps that runs offline. */
export function starter(name: string): string {
  return `name: ${name}
version: "1.0"

config:
  provider: mock # replies are made up; a real one: openai, with OPENAI_API_KEY
  model: gpt-4o-mini

state:
  topic: why the sky is blue

steps:
  - id: draft
    type: llm_call
    prompt: "Explain in two sentences {state.topic}."
    output: draft

  - id: polish
    type: llm_call
    depends_on: [draft]
    prompt: |
      Make this easier to read, and keep it as long as it is.

      {state.draft}
    output: text
`;
}
