// What the graph's page and the extension say to each other.
import type { Direction, Drawing, Graph, RunEvent } from '../protocol';

/** How many problems the editor shows in a step. */
export interface Problems {
  readonly errors: number;
  readonly warnings: number;
}

export type ToPage =
  | { readonly kind: 'graph'; readonly graph: Graph; readonly direction: Direction; readonly problems: Readonly<Record<string, Problems>> }
  | { readonly kind: 'nothing'; readonly words: string }
  | { readonly kind: 'problems'; readonly problems: Readonly<Record<string, Problems>> }
  | { readonly kind: 'cursor'; readonly path: string | null }
  | { readonly kind: 'event'; readonly event: RunEvent }
  /** The drawing of a step's workflow that is in a file of its own. */
  | { readonly kind: 'child'; readonly path: string; readonly drawing: Drawing };

export type FromPage =
  | { readonly kind: 'ready' }
  /** Go to a step; `uri` is the file where it is not the panel's own. */
  | { readonly kind: 'open'; readonly path: string; readonly focus: boolean }
  | { readonly kind: 'enter'; readonly path: string; readonly uri: string }
  | { readonly kind: 'direction'; readonly direction: Direction }
  | { readonly kind: 'export'; readonly svg: string };
