// Zooming and moving, as numbers. A camera says where the drawing's corner is on the stage, in pixels, and how large a pixel is.

export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Box extends Size {
  readonly x: number;
  readonly y: number;
}

export const LEAST = 0.08;
export const MOST = 4;
/** The zoom below which names can't be read any more. */
export const READABLE = 0.6;
/** The least zoom at first. */
const AT_FIRST = 0.75;

/** Zoom by a factor, and leave what is at a point of the stage where it is. */
export function zoomAt(camera: Camera, factor: number, x: number, y: number): Camera {
  const zoom = Math.min(MOST, Math.max(LEAST, camera.zoom * factor));
  const real = zoom / camera.zoom;
  return { zoom, x: x - (x - camera.x) * real, y: y - (y - camera.y) * real };
}

/** Show all of a drawing in the middle of the stage, never larger than life. */
export function fit(drawing: Size, stage: Size): Camera {
  const zoom = Math.max(LEAST, Math.min(1, stage.width / drawing.width, stage.height / drawing.height));
  return centre(zoom, drawing.width / 2, drawing.height / 2, drawing, stage);
}

/** Show a drawing at first: all of it if that can be read, else the part around a box. */
export function begin(drawing: Size, stage: Size, around: Box | undefined): Camera {
  const whole = fit(drawing, stage);
  if (whole.zoom >= AT_FIRST || around === undefined) return whole;
  return centre(AT_FIRST, around.x + around.width / 2, around.y + around.height / 2, drawing, stage);
}

/** Show a point of the drawing in the middle of the stage, or as near to it as leaves no empty room on one side. */
export function centre(zoom: number, x: number, y: number, drawing: Size, stage: Size): Camera {
  const place = (at: number, size: number, room: number): number =>
    size * zoom <= room ? (room - size * zoom) / 2 : Math.min(0, Math.max(room - size * zoom, room / 2 - at * zoom));
  return { zoom, x: place(x, drawing.width, stage.width), y: place(y, drawing.height, stage.height) };
}

/** Move just enough to have a box in sight, with a margin around it. */
export function reveal(camera: Camera, box: Box, stage: Size, margin = 32): Camera {
  const shift = (start: number, length: number, room: number): number => {
    const end = start + length;
    if (start < margin) return margin - start;
    return end > room - margin ? Math.max(room - margin - end, margin - start) : 0;
  };
  return {
    zoom: camera.zoom,
    x: camera.x + shift(camera.x + box.x * camera.zoom, box.width * camera.zoom, stage.width),
    y: camera.y + shift(camera.y + box.y * camera.zoom, box.height * camera.zoom, stage.height),
  };
}
