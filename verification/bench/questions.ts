/** The calls that the suites of MCP and A2A measure. */

import { AGENT_HEADERS, FROM_BACKEND, INPUT, type Question } from './contestant.ts';
import { CALLED, lastTool } from './tools.ts';

/** Where gateway and peers serve MCP. */
export const MCP_PATH = '/mcp';

const VERSION = '2026-07-28';
const META = {
  'io.modelcontextprotocol/protocolVersion': VERSION,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** `tools/list` of a server with `count` tools. */
export function listQuestion(count: number): Question {
  return rpc('tools/list', {}, `"name":"${lastTool(count)}"`);
}

/** `tools/call` of a free tool that calls the backend. */
export function callQuestion(): Question {
  return rpc('tools/call', { name: CALLED, arguments: INPUT }, FROM_BACKEND);
}

function rpc(method: string, params: { readonly name?: string; readonly arguments?: object }, holds: string): Question {
  return {
    path: MCP_PATH,
    headers: {
      ...AGENT_HEADERS,
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': VERSION,
      'mcp-method': method,
      ...(params.name === undefined ? {} : { 'mcp-name': params.name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }),
    expect: 200,
    holds,
  };
}

/** Where gateway and peer serve A2A. */
export const A2A_PATH = '/a2a';

/** `SendMessage` of A2A 1.0 to a free skill that calls the backend. */
export const SEND_QUESTION: Question = {
  path: A2A_PATH,
  headers: { ...AGENT_HEADERS, 'a2a-version': '1.0' },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: {
      message: {
        messageId: '6f1c2a4e-3f0b-4a57-9a53-2b8f6f0f6f11',
        role: 'ROLE_USER',
        parts: [{ data: { resource: CALLED, input: INPUT }, mediaType: 'application/json' }],
      },
    },
  }),
  expect: 200,
  holds: FROM_BACKEND,
};
