// The language server as this window sees it: found, started, stopped, started again.
import * as vscode from 'vscode';
import { LanguageClient, type LanguageClientOptions, type Middleware, RevealOutputChannelOn, type ServerOptions, State } from 'vscode-languageclient/node';
import { explain } from './find';
import { environment, type Found, locate } from './locate';
import { type Done, run } from './processes';

/** What can be said of the server. */
export type Standing =
  | { readonly state: 'starting' }
  | { readonly state: 'running'; readonly version: string; readonly command: string }
  | { readonly state: 'stopped' }
  | { readonly state: 'missing'; readonly words: string; readonly old: boolean };

/** Yields files that the server may speak of: YAML on a disk or not yet saved. Other schemes are other versions of them. */
const SELECTOR = ['yaml', 'agentloom'].flatMap((language) => ['file', 'untitled'].map((scheme) => ({ scheme, language })));

/** One server for the window. Every start looks for agentloom anew. */
export class Server implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<Standing>();
  readonly #connected = new vscode.EventEmitter<LanguageClient>();
  /** Says how the server stands, whenever that changes. */
  readonly onChange = this.#changed.event;
  /** A client, before it is started: the place to listen for notifications. */
  readonly onConnect = this.#connected.event;
  #standing: Standing = { state: 'stopped' };
  #client: LanguageClient | undefined;
  #found: Found | undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly trace: vscode.LogOutputChannel,
    private readonly middleware: Middleware,
  ) {}

  get standing(): Standing {
    return this.#standing;
  }

  /** The client, while the server runs. */
  get client(): LanguageClient | undefined {
    return this.#client?.state === State.Running ? this.#client : undefined;
  }

  /** Start the server, or start it again. Calls wait for each other. */
  restart(): Promise<void> {
    this.#turn = this.#turn.then(() => this.#restart());
    return this.#turn;
  }

  /** Run agentloom's command line, as it was found for the server; undefined where it was not found. */
  async command(args: readonly string[], input = ''): Promise<Done | undefined> {
    const found = this.#found ?? (await locate(this.log)).found;
    if (found === undefined) return undefined;
    return run(found.candidate.command, [...found.candidate.before, ...args], { env: environment(), input });
  }

  async #restart(): Promise<void> {
    await this.#stop();
    this.#say({ state: 'starting' });
    const { found, trials } = await locate(this.log);
    this.#found = found;
    if (found === undefined) {
      const words = explain(trials);
      this.log.warn(words);
      this.#say({ state: 'missing', words, old: trials.some(([, trial]) => trial.end === 'old') });
      return;
    }
    const { command, before } = found.candidate;
    const server: ServerOptions = { command, args: [...before, 'lsp'], options: { env: environment() } };
    const options: LanguageClientOptions = {
      documentSelector: SELECTOR,
      outputChannel: this.log,
      traceOutputChannel: this.trace,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: this.middleware,
      initializationOptions: {
        ...vscode.workspace.getConfiguration('agentloom'),
        ...(vscode.workspace.isTrusted ? {} : { 'tools.learn': false }), // learning imports what the workspace holds
      },
    };
    const client = new LanguageClient('agentloom', 'agentloom', server, options);
    client.onDidChangeState(({ newState }) => {
      if (client !== this.#client) return;
      if (newState === State.Running) this.#say({ state: 'running', version: found.version, command });
      else if (newState === State.Stopped) this.#say({ state: 'stopped' });
    });
    this.#client = client;
    this.#connected.fire(client);
    try {
      await client.start();
    } catch (error) {
      this.log.error(String(error));
      this.#say({ state: 'stopped' });
    }
  }

  async #stop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined && client.state !== State.Stopped) {
      try {
        await client.stop();
      } catch (error) {
        this.log.warn(`the server didn't stop as asked: ${String(error)}`);
      }
    }
  }

  #say(standing: Standing): void {
    this.#standing = standing;
    this.#changed.fire(standing);
  }

  async stop(): Promise<void> {
    await this.#turn;
    await this.#stop();
  }

  dispose(): void {
    this.#changed.dispose();
    this.#connected.dispose();
  }
}
