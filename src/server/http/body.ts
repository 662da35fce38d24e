/** Reads the bodies of requests for the adapters: strict JSON, bounded, with its original bytes. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.ts';
import { JsonError, parseStrictJson } from '../../json/strict.ts';
import type { Json } from '../../json/types.ts';
import { trailersRefused } from './framing.ts';
import { isEncoded, isJsonType, readHeader } from './headers.ts';

/** Largest request body, bytes on the wire (specification 8). */
export const MAX_BODY_BYTES = 262_144;

const CHARSET = /;\s*charset\s*=\s*"?([^\s";]*)/i;
/** The test by which Node leaves `100 Continue` to the server. */
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i;

/** A body as it came, and the JSON in it. */
interface JsonBody {
  readonly bytes: Uint8Array;
  readonly value: Json;
  /** Nothing came: `bytes` and `value` are those of `{}`. */
  readonly absent: boolean;
}

/**
 * Reads a JSON body without a body parser: the type is checked before a byte is read, bytes are
 * counted as they arrive, the 413 goes out with the first byte too many, and the original bytes are
 * kept for the backend. An empty body is `{}`.
 * @throws GatewayError UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, INPUT_INVALID
 */
export async function readJsonBody(req: IncomingMessage, res: ServerResponse): Promise<JsonBody> {
  const bytes = await readJsonBytes(req, res);
  if (bytes.length === 0) return { bytes: Buffer.from('{}'), value: {}, absent: true };
  try {
    return { bytes, value: parseStrictJson(bytes), absent: false };
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    throw new GatewayError('INPUT_INVALID', { message: thrown.message, details: { reason: thrown.reason } });
  }
}

/**
 * The bytes of a JSON body, not parsed: for adapters whose protocol has its own error for invalid
 * JSON.
 * @throws GatewayError UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, INPUT_INVALID
 */
export async function readJsonBytes(req: IncomingMessage, res: ServerResponse): Promise<Uint8Array> {
  return readBytes(req, res, !hasJsonType(req));
}

/** False when there is no content type at all, which is right for an empty body only. */
function hasJsonType(req: IncomingMessage): boolean {
  if (isEncoded(req.headers['content-encoding']))
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', { message: 'Send the body without content-encoding.' });
  const type = readHeader(req, 'content-type');
  if (type.kind === 'absent') return false;
  if (type.kind === 'single' && isJsonType(type.value) && isUtf8(type.value)) return true;
  throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', {
    message: 'The body must be application/json or a +json type, in UTF-8.',
  });
}

function tooLarge(): GatewayError {
  return new GatewayError('PAYLOAD_TOO_LARGE', { details: { maxBytes: MAX_BODY_BYTES } });
}

/**
 * The bytes of a body whose type is checked already. `mustBeEmpty`: it has no type.
 * @throws GatewayError PAYLOAD_TOO_LARGE, INPUT_INVALID, and UNSUPPORTED_MEDIA_TYPE where it must
 * be empty and is not
 */
export function readBytes(req: IncomingMessage, res: ServerResponse, mustBeEmpty: boolean): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const noType = (): GatewayError =>
      new GatewayError('UNSUPPORTED_MEDIA_TYPE', { message: 'Send content-type: application/json with a body.' });
    const chunks: Buffer[] = [];
    let size = 0;
    const refuse = (error: GatewayError): void => {
      req.off('data', onData);
      req.pause();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) refuse(tooLarge());
      else if (mustBeEmpty) refuse(noType());
      else chunks.push(chunk);
    };
    const declared = Number(req.headers['content-length'] ?? 0);
    if (declared > MAX_BODY_BYTES) return refuse(tooLarge());
    if (mustBeEmpty && declared > 0) return refuse(noType());
    const onEnd = (): void => {
      const trailers = trailersRefused(req);
      if (trailers === undefined)
        resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
      else {
        res.shouldKeepAlive = false;
        reject(trailers);
      }
    };
    if (isThere(req)) {
      for (let chunk: Buffer | null = req.read(); chunk !== null; chunk = req.read()) onData(chunk);
      return onEnd();
    }
    req.on('data', onData);
    req.once('end', onEnd);
    req.once('error', (cause) =>
      // An error of the connection's own is not the caller's fault.
      reject(
        cause instanceof GatewayError
          ? cause
          : new GatewayError('INPUT_INVALID', { details: { reason: 'incomplete_body' }, cause }),
      ),
    );
    // Last, so that a caller that waits for it does not send what would be refused.
    if (CONTINUE.test(req.headers.expect ?? '')) res.writeContinue();
  });
}

/**
 * Whether all of a body has come and nothing has read of it, as of each call that waited for its
 * turn: then no event has to be waited for, and each of them costs as much as a check.
 */
function isThere(req: IncomingMessage): boolean {
  return req.complete && !req.destroyed && req.readableFlowing === null;
}

function isUtf8(contentType: string): boolean {
  const charset = CHARSET.exec(contentType)?.[1]?.toLowerCase();
  return charset === undefined || charset === 'utf-8' || charset === 'utf8';
}
