// The published schema for Red Hat's YAML extension, where the user wants it. The server says everything the schema says, so by default it is not
// contributed: the same mistake would be told twice.
import * as vscode from 'vscode';
import { SCHEMA_ID, schemaFor } from './schema';

interface YamlApi {
  registerContributor(id: string, uriOf: (resource: string) => string | undefined, contentOf: (uri: string) => string | undefined): boolean;
}

/** Offer the schemas to the YAML extension; each question looks at the setting anew. */
export async function contributeSchema(context: vscode.ExtensionContext): Promise<void> {
  const extension = vscode.extensions.getExtension<YamlApi>('redhat.vscode-yaml');
  if (extension === undefined) return;
  const texts = new Map<string, string>();
  for (const name of ['workflow', 'agent']) {
    const uri = vscode.Uri.joinPath(context.extensionUri, 'dist', `${name}.schema.json`);
    texts.set(name, new TextDecoder().decode(await vscode.workspace.fs.readFile(uri)));
  }
  const api = await extension.activate();
  api.registerContributor(
    SCHEMA_ID,
    (resource) => {
      const wanted = vscode.workspace.getConfiguration('agentloom').get<boolean>('yaml.schema') ?? false;
      return wanted ? schemaFor(resource) : undefined;
    },
    (uri) => texts.get(uri.split('/').at(-1) ?? ''),
  );
}
