// Which step the arrow keys lead to.
import type { Direction, Drawing, GraphNode } from '../protocol';

export type Arrow = 'ArrowUp' | 'ArrowDown' | 'ArrowLeft' | 'ArrowRight' | 'Home' | 'End';

/**
 * Return the step that a key leads to from another; the same at the border. Along the layers a step that is connected comes before one
 * that is nearest; across, the neighbour in the layer.
 */
export function towards(drawing: Drawing, from: string, key: Arrow, direction: Direction): string {
  const nodes = drawing.nodes;
  const at = nodes.find((node) => node.id === from);
  if (key === 'Home' || at === undefined) return nodes[0]?.id ?? from;
  if (key === 'End') return nodes.at(-1)?.id ?? from;
  const step = key === 'ArrowDown' || key === 'ArrowRight' ? 1 : -1;
  const upright = key === 'ArrowUp' || key === 'ArrowDown';
  const place = (node: GraphNode) => (direction === 'down' ? node.x + node.width / 2 : node.y + node.height / 2);
  if (upright !== (direction === 'down')) {
    const layer = nodes.filter((node) => node.layer === at.layer).sort((one, other) => place(one) - place(other));
    return layer[layer.indexOf(at) + step]?.id ?? from;
  }
  const linked = drawing.edges
    .filter((edge) => (step > 0 ? edge.source : edge.target) === from)
    .map((edge) => (step > 0 ? edge.target : edge.source));
  const onward = (node: GraphNode) => (node.layer - at.layer) * step > 0;
  const near = (found: GraphNode[]) =>
    found.sort((one, other) => Math.abs(one.layer - at.layer) - Math.abs(other.layer - at.layer) || Math.abs(place(one) - place(at)) - Math.abs(place(other) - place(at)))[0]?.id;
  return near(nodes.filter((node) => linked.includes(node.id) && onward(node))) ?? near(nodes.filter(onward)) ?? from;
}
