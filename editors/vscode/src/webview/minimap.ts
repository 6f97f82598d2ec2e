// The whole drawing in a corner, where it doesn't fit the stage: what is in sight has a frame, and a press goes there.
import type { Drawing } from '../protocol';
import type { Camera, Size } from './camera';
import { element } from './draw';

const ROOM: Size = { width: 170, height: 120 };

export class Minimap {
  readonly root = element('svg', { id: 'minimap', 'aria-hidden': 'true' });
  readonly #frame = element('rect', { class: 'frame' });
  #scale = 1;

  /** `go` is told which point of the drawing is to be in the middle of the stage. */
  constructor(go: (x: number, y: number) => void) {
    const steer = (event: PointerEvent) => {
      event.stopPropagation();
      if (event.buttons === 1) go(event.offsetX / this.#scale, event.offsetY / this.#scale);
    };
    this.root.addEventListener('pointerdown', (event) => {
      this.root.setPointerCapture(event.pointerId);
      steer(event);
    });
    this.root.addEventListener('pointermove', steer);
  }

  /** Draw the steps anew. */
  draw(drawing: Drawing): void {
    this.#scale = Math.min(ROOM.width / drawing.width, ROOM.height / drawing.height);
    this.root.setAttribute('width', String(drawing.width * this.#scale));
    this.root.setAttribute('height', String(drawing.height * this.#scale));
    this.root.setAttribute('viewBox', `0 0 ${drawing.width} ${drawing.height}`);
    const boxes = drawing.nodes.map((node) =>
      element('rect', { class: `dot ${node.type}`, 'data-dot': node.id, x: node.x, y: node.y, width: node.width, height: node.height }));
    this.root.replaceChildren(...boxes, this.#frame);
  }

  /** Frame what is in sight; there is no minimap where all of it is. */
  look(camera: Camera, drawing: Size, stage: Size): void {
    const whole = camera.x >= 0 && camera.y >= 0 && camera.x + drawing.width * camera.zoom <= stage.width && camera.y + drawing.height * camera.zoom <= stage.height;
    this.root.classList.toggle('needless', whole);
    const place = { x: -camera.x / camera.zoom, y: -camera.y / camera.zoom, width: stage.width / camera.zoom, height: stage.height / camera.zoom };
    for (const [name, value] of Object.entries({ ...place, 'stroke-width': 2 / this.#scale })) this.#frame.setAttribute(name, String(value));
  }

  /** Show how a step goes. */
  colour(id: string, status: string): void {
    const dot = this.root.querySelector<SVGRectElement>(`[data-dot="${CSS.escape(id)}"]`);
    if (dot !== null) dot.dataset.status = status;
  }
}
