/** How an input enters the gateway, for each channel. */

import { HOST, head } from './framing-case.ts';
import type { WireAnswer } from './http-bytes.ts';

/** A channel that carries an input to the echoing resource. */
export interface Entrance {
  readonly name: string;
  /** Levels of JSON around the input. */
  readonly levels: number;
  /** A whole body around the input, which may be any text. */
  around(input: string | Buffer): Buffer;
  /** A request with a body; `lines` instead of the usual content type. */
  request(body: Buffer, lines?: readonly string[]): Buffer;
}

const USUAL = ['Content-Type: application/json'];

const entrance = (name: string, path: string, before: string, after: string, own: readonly string[]): Entrance => ({
  name,
  levels: [...before].reduce((open, char) => open + ('[{'.includes(char) ? 1 : '}]'.includes(char) ? -1 : 0), 0),
  around: (input) => Buffer.concat([Buffer.from(before), Buffer.from(input), Buffer.from(after)]),
  request: (body, lines = USUAL) => {
    const fields = [HOST, `Content-Length: ${body.length}`, ...own, ...lines];
    return Buffer.concat([Buffer.from(head(`POST ${path} HTTP/1.1`, ...fields), 'latin1'), body]);
  },
});

const TOOL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free_echo","arguments":';
const MESSAGE =
  '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER",' +
  '"parts":[{"mediaType":"application/json","data":{"resource":"free_echo","input":';

/** Every channel that takes an input. */
export const ENTRANCES: readonly Entrance[] = [
  entrance('HTTP', '/api/resources/free_echo/invoke', '', '', []),
  entrance('MCP', '/mcp', TOOL, '}}', []),
  entrance('A2A', '/a2a', MESSAGE, '}}]}}}', ['A2A-Version: 1.0']),
];

/** Whether a channel refused a request, in its own format. */
export function isRefusal({ status, body }: WireAnswer): boolean {
  if (status >= 400) return true;
  const document = JSON.parse(body.toString()) as { readonly error?: unknown };
  return document.error !== undefined;
}
