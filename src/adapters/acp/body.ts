import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Operation } from '../../checkouts/operations.ts';
import { JsonError, parseStrictJson } from '../../json/strict.ts';
import type { Json } from '../../json/types.ts';
import { readBytes } from '../../server/http/body.ts';
import { AcpError } from './error.ts';

/** A body as it came, and the JSON in it. */
interface CheckoutBody {
  /** Undefined where there is none: reading, and a bare cancel. */
  readonly bytes: Uint8Array | undefined;
  readonly value: Json;
}

const NOTHING: CheckoutBody = { bytes: undefined, value: {} };

/**
 * Reads what an operation is given. The bytes are kept as they came, for the merchant (acp.md 13.2); that is only safe because no
 * parser can read them in two ways. `contentType`: what `checkMediaType` found.
 * @throws AcpError invalid_json; GatewayError of `readBytes`
 */
export async function readBody(
  { operation, contentType }: { readonly operation: Operation; readonly contentType: string | undefined },
  req: IncomingMessage,
  res: ServerResponse,
): Promise<CheckoutBody> {
  if (operation === 'getCheckoutSession') return NOTHING;
  const bytes = await readBytes(req, res, contentType === undefined);
  if (bytes.length === 0 && operation === 'cancelCheckoutSession') return NOTHING;
  if (bytes.length === 0)
    throw new AcpError('invalid_json', { message: 'The body is empty; it must be a JSON object.' });
  try {
    return { bytes, value: parseStrictJson(bytes) };
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    throw new AcpError('invalid_json', { message: thrown.message });
  }
}
