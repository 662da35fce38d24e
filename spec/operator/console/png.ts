import { inflateSync } from 'node:zlib';

/** A picture as rows of red, green, blue; 0 to 255. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Three bytes a pixel. */
  readonly rgb: Uint8Array;
}

/**
 * Reads what a browser writes: 8 bits a channel, RGB or RGBA, not interlaced (PNG, third edition).
 * @throws Error for others
 */
export function decodePng(png: Buffer): Picture {
  const width = png.readUInt32BE(16);
  const height = png.readUInt32BE(20);
  const [depth, colorType, , , interlace] = png.subarray(24, 29);
  const channels = { 2: 3, 6: 4 }[colorType ?? 0];
  if (depth !== 8 || channels === undefined || interlace !== 0) throw new Error('not a picture of a browser');
  const parts: Buffer[] = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const filtered = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  const rgb = new Uint8Array(width * height * 3);
  let above = new Uint8Array(stride);
  for (let y = 0; y < height; y += 1) {
    const begin = y * (stride + 1);
    const row = unfilter(filtered[begin] ?? 0, filtered.subarray(begin + 1, begin + 1 + stride), above, channels);
    for (let x = 0; x < width; x += 1) rgb.set(row.subarray(x * channels, x * channels + 3), (y * width + x) * 3);
    above = row;
  }
  return { width, height, rgb };
}

function unfilter(filter: number, line: Uint8Array, above: Uint8Array, channels: number): Uint8Array<ArrayBuffer> {
  const row = new Uint8Array(line.length);
  for (let i = 0; i < line.length; i += 1) {
    const left = i < channels ? 0 : (row[i - channels] ?? 0);
    const up = above[i] ?? 0;
    const corner = i < channels ? 0 : (above[i - channels] ?? 0);
    const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0;
    row[i] = (line[i] ?? 0) + guess;
  }
  return row;
}

function paeth(left: number, up: number, corner: number): number {
  const near = left + up - corner;
  const [toLeft, toUp, toCorner] = [Math.abs(near - left), Math.abs(near - up), Math.abs(near - corner)];
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

/** A part of a picture; `box` in pixels of it. */
export function cut(
  { width, height, rgb }: Picture,
  box: { x: number; y: number; width: number; height: number },
): Picture {
  const [left, top] = [Math.floor(box.x), Math.floor(box.y)];
  const right = Math.min(width, Math.ceil(box.x + box.width));
  const bottom = Math.min(height, Math.ceil(box.y + box.height));
  const rows = Array.from({ length: Math.max(0, bottom - top) }, (_, row) =>
    rgb.subarray(((top + row) * width + left) * 3, ((top + row) * width + right) * 3),
  );
  return { width: right - left, height: rows.length, rgb: Uint8Array.from(Buffer.concat(rows)) };
}

/**
 * The relative luminances of WCAG 2 in a picture, darkest and lightest, and how many colours there
 * are.
 */
export function tones({ rgb }: Picture): {
  readonly darkest: number;
  readonly lightest: number;
  readonly colors: number;
} {
  const colors = new Set<number>();
  for (let i = 0; i < rgb.length; i += 3)
    colors.add(((rgb[i] ?? 0) << 16) | ((rgb[i + 1] ?? 0) << 8) | (rgb[i + 2] ?? 0));
  const luminances = [...colors].map(luminance);
  return { darkest: Math.min(...luminances), lightest: Math.max(...luminances), colors: colors.size };
}

/** The relative luminance of WCAG 2 of a colour, 0xRRGGBB. */
export function luminance(color: number): number {
  const [red = 0, green = 0, blue = 0] = [color >> 16, (color >> 8) & 255, color & 255].map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
