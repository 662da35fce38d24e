import { JsonError, parseStrictJson } from '../../json/strict.ts';
import type { Json } from '../../json/types.ts';
import { INVALID_REQUEST, idOf, PARSE_ERROR, type RpcId } from './message.ts';

/** A body as JSON, or why it is none; `id` is what could be read of it all the same. */
type BodyReading =
  | { readonly ok: true; readonly value: Json }
  | {
      readonly ok: false;
      readonly id: RpcId | null;
      readonly code: typeof PARSE_ERROR | typeof INVALID_REQUEST;
      readonly message: string;
    };

/** Parses a body. What is JSON, but says two things at once or more than can be held, is refused as a request. */
export function readBody(bytes: Uint8Array): BodyReading {
  try {
    return { ok: true, value: parseStrictJson(bytes) };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const code = error.reason === 'malformed_json' ? PARSE_ERROR : INVALID_REQUEST;
    return { ok: false, id: idOf(error.document), code, message: error.message };
  }
}
