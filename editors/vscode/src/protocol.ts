// What the server answers to requests of our own: docs/editor-features.md tells what each key means.

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

/** How one step went, or goes. */
export interface StepRun {
  readonly status: string;
  readonly durationMs: number;
  readonly costUsd: number;
  readonly tokens: number;
  readonly error: string | null;
}

export interface GraphNode {
  readonly id: string;
  readonly type: string;
  /** From 1. */
  readonly layer: number;
  readonly detail: string;
  readonly critical: boolean;
  readonly faulty: boolean;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly path: string;
  readonly range: Range;
  readonly nameRange: Range;
  readonly run: StepRun | null;
  /** The drawing of a workflow that is written in place. */
  readonly child?: Drawing;
  /** The file of a workflow that is not. */
  readonly childUri?: string;
}

export interface GraphEdge {
  readonly source: string;
  readonly target: string;
  readonly kind: 'plain' | 'branch' | 'cycle';
  readonly label: string;
  readonly critical: boolean;
  readonly path: string;
  readonly label_at?: readonly [number, number];
}

export interface Drawing {
  readonly name: string;
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

/** `agentloom/graph` */
export interface Graph extends Drawing {
  readonly uri: string;
  readonly run: { readonly runId: string; readonly status: string } | null;
}

export type Direction = 'down' | 'right';

/** One of `agentloom/runs` */
export interface Run {
  readonly runId: string;
  readonly workflow: string;
  readonly status: string;
  readonly ongoing: boolean;
  readonly uri: string | null;
  readonly file: string | null;
  readonly folder: string;
  readonly created: string | null;
  readonly updated: string | null;
  readonly costUsd: number;
  readonly stepsDone: number;
  readonly steps: number;
  readonly pausedStep: string | null;
  readonly resumable: boolean;
  readonly error: string | null;
}

export interface Runs {
  readonly runs: readonly Run[];
  readonly problems: readonly string[];
}

export interface StepResult {
  readonly status: string;
  readonly output?: unknown;
  readonly error?: string | null;
  readonly duration_ms?: number;
  readonly cost_usd?: number;
  readonly token_usage?: { readonly total_tokens?: number } | null;
  readonly model?: string | null;
  readonly provider?: string | null;
}

/** `agentloom/run` */
export interface RunDetails extends Run {
  readonly results: Readonly<Record<string, StepResult>>;
  readonly state: Readonly<Record<string, unknown>>;
  readonly checkpoint: string | null;
  readonly output: string;
  readonly problem: string | null;
}

/** A line of `agentloom run --events`, and `run_ended` behind the last. */
export interface RunEvent {
  readonly event: string;
  readonly run_id: string;
  readonly step?: string;
  readonly status?: string;
  readonly error?: string | null;
  readonly workflow?: string;
  readonly steps?: number;
  readonly attempt?: number;
  readonly attempts?: number;
  readonly duration_ms?: number;
  readonly cost_usd?: number;
  readonly tokens?: number;
  readonly total_cost_usd?: number;
}

/** `agentloom/runEvent` */
export interface RunEventParams {
  readonly runId: string;
  readonly uri: string;
  readonly event: RunEvent;
}
