import { type Answered, ask } from '../../e2e/ask.ts';

export const ENABLED = { protocols: { mcp: { enabled: true } } };

/** The members of `_meta` that every request of the modern era has. */
export const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'spec', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
} as const;

export type Headers = Readonly<Record<string, string>>;

/** The headers of the modern era for a method, and for the tool that it calls. */
export function modernHeaders(method: string, name?: string): Headers {
  return {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(name === undefined ? {} : { 'mcp-name': name }),
  };
}

/** A raw POST to /mcp; an object is sent as JSON. */
export function postMcp(base: string, body: unknown, headers: Headers = {}): Promise<Answered> {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return ask(base, { path: '/mcp', headers: { 'content-type': 'application/json', ...headers }, body: text });
}

/** The members of a result of `tools/call` that specs read. */
export interface CallResult {
  readonly content: readonly {
    readonly type: string;
    readonly text?: string;
    readonly data?: string;
    readonly mimeType?: string;
    readonly resource?: { readonly uri: string; readonly mimeType: string; readonly blob: string };
  }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
  readonly resultType?: string;
  readonly _meta: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Calls a tool in either era and gives the result. */
export async function callTool(
  base: string,
  name: string,
  input: object = {},
  { era = 'legacy', meta = {}, headers = {} }: { era?: 'legacy' | 'modern'; meta?: object; headers?: Headers } = {},
): Promise<CallResult> {
  const modern = era === 'modern';
  const params = { name, arguments: input, _meta: { ...(modern ? MODERN_META : {}), ...meta } };
  const sent = { ...(modern ? modernHeaders('tools/call', name) : {}), ...headers };
  const answer = await postMcp(base, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, sent);
  const { result, error } = JSON.parse(answer.text) as { result?: CallResult; error?: object };
  if (result === undefined) throw new Error(`no result: ${answer.status} ${JSON.stringify(error)}`);
  return result;
}
