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
export const READABLE = 0.62;

/** Zoom by a factor, and leave what is at a point of the stage where it is. */
export function zoomAt(camera: Camera, factor: number, x: number, y: number): Camera {
  const zoom = Math.min(MOST, Math.max(LEAST, camera.zoom * factor));
  const real = zoom / camera.zoom;
  return { zoom, x: x - (x - camera.x) * real, y: y - (y - camera.y) * real };
}

/** Show all of a drawing in the middle of the stage, never larger than life. */
export function fit(drawing: Size, stage: Size, least = LEAST): Camera {
  const zoom = Math.max(least, Math.min(1, stage.width / drawing.width, stage.height / drawing.height));
  return { zoom, x: middle(drawing.width * zoom, stage.width), y: middle(drawing.height * zoom, stage.height) };
}

/** What doesn't fit is shown from its beginning. */
function middle(size: number, room: number): number {
  return size > room ? 0 : (room - size) / 2;
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
