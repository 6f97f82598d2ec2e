// What is shown as a file of its own: an SVG with its colours in it.
import type { Size } from './camera';

const COPIED = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-size', 'font-weight', 'font-family', 'text-anchor', 'display', 'stroke-linecap', 'stroke-linejoin'];
const MARGIN = 8;

/** Return an SVG document of a drawing as it looks now, in its natural size. */
export function standalone(shown: SVGSVGElement, size: Size, name: string): string {
  const copy = shown.cloneNode(true) as SVGSVGElement;
  const from = [...shown.querySelectorAll('*')];
  const to = [...copy.querySelectorAll('*')];
  for (const [at, original] of from.entries()) {
    const target = to[at];
    if (target === undefined) continue;
    const style = getComputedStyle(original);
    for (const property of COPIED) {
      const value = style.getPropertyValue(property);
      if (value) target.setAttribute(property, value);
    }
    for (const useless of ['class', 'tabindex', 'role', 'data-status', 'data-problems']) target.removeAttribute(useless);
  }
  copy.querySelector('#drawing')?.removeAttribute('transform');
  const [width, height] = [size.width + 2 * MARGIN, size.height + 2 * MARGIN];
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', String(width));
  copy.setAttribute('height', String(height));
  copy.setAttribute('viewBox', `${-MARGIN} ${-MARGIN} ${width} ${height}`);
  copy.removeAttribute('class');
  const back = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  const paper = { x: -MARGIN, y: -MARGIN, width, height, fill: getComputedStyle(document.body).backgroundColor };
  for (const [key, value] of Object.entries(paper)) back.setAttribute(key, String(value));
  const title = document.createElementNS('http://www.w3.org/2000/svg', 'title');
  title.textContent = name;
  copy.prepend(title, back);
  return `${new XMLSerializer().serializeToString(copy)}\n`;
}
