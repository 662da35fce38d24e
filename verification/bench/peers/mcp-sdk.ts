/** The official MCP server as contestants. */

import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import express from 'express';
import {
  type Contestant,
  callQuestion,
  INPUT_SCHEMA,
  listQuestion,
  MCP_PATH,
  type Question,
  tools,
} from '../contestant.ts';
import { exact, peerProgram, pooledBackend, servePeer } from '../serve-peer.ts';

/** What the gateway derives from a resource: both servers list the same tools. */
const HINTS = { destructiveHint: false } as const;

/**
 * The official server as its guide mounts it on Express: a factory, `createMcpHandler`,
 * `toNodeHandler` with the parsed body, which costs it less than node:http alone. No log, no
 * events, no checks of Host or Origin.
 */
export const mcpSdk: readonly Contestant[] = [
  contestant('sdk-list-5', 'tools/list of 5', listQuestion(5), 5),
  contestant('sdk-list-55', 'tools/list of 55', listQuestion(55), 55),
  contestant('sdk-call-5', 'tools/call of 5 on a bare undici pool', callQuestion(), 5),
  contestant('sdk-call-55', 'tools/call of 55 on a bare undici pool', callQuestion(), 55),
];

function contestant(id: string, what: string, question: Question, count: number): Contestant {
  return {
    id,
    suite: 'mcp',
    title: `${exact('@modelcontextprotocol/server', 'express')}, ${what}`,
    question,
    readyPath: MCP_PATH,
    process: `sdk-mcp-${count}`,
    program: peerProgram(import.meta.filename, { TOOLS: String(count) }),
  };
}

if (import.meta.main) servePeer((backendUrl) => sdkApp(backendUrl, Number(process.env['TOOLS'])));

function sdkApp(backendUrl: string, count: number) {
  const ask = pooledBackend(backendUrl);
  // Compiled once for all servers: not in the guide, but an obvious improvement for its users.
  const inputSchema = fromJsonSchema(INPUT_SCHEMA);
  const listed = tools(count);
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'bench', title: 'Bench', version: '1.0.0' });
    for (const { id, name: title, description } of listed)
      server.registerTool(id, { title, description, inputSchema, annotations: HINTS }, async (input) => {
        const report = await ask(input);
        return { content: [{ type: 'text', text: JSON.stringify(report) }], structuredContent: report };
      });
    return server;
  });
  const node = toNodeHandler(handler);
  return express()
    .use(express.json())
    .all(MCP_PATH, (req, res) => void node(req, res, req.body));
}
