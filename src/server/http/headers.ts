import type { IncomingMessage } from 'node:http';

/** A header as the caller sent it. Node joins most repeated headers with a comma, which must not pass for one value. */
export type HeaderReading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'single'; readonly value: string }
  | { readonly kind: 'repeated' };

/** Reads one header by its lower-case name from the raw list. */
export function readHeader(req: IncomingMessage, name: string): HeaderReading {
  const joined = req.headers[name];
  if (joined === undefined) return { kind: 'absent' };
  let value: string | undefined;
  const raw = req.rawHeaders;
  for (let at = 0; at < raw.length; at += 2) {
    if (raw[at]?.toLowerCase() !== name) continue;
    if (value !== undefined) return { kind: 'repeated' };
    value = raw[at + 1] ?? '';
  }
  return value === undefined ? { kind: 'absent' } : { kind: 'single', value };
}

/** The value when the header came exactly once. */
export function singleHeader(req: IncomingMessage, name: string): string | undefined {
  const reading = readHeader(req, name);
  return reading.kind === 'single' ? reading.value : undefined;
}
