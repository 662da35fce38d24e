/** The official MCP clients in their four modes, behind one interface. */

import { Client, StreamableHTTPClientTransport, type VersionNegotiationMode } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** What all official clients can do. */
export interface McpClient {
  /** The list as the client gives it out. The clients also learn from it what a tool promises. */
  listTools(): Promise<readonly ListedTool[]>;
  callTool(call: ToolCall): Promise<ToolAnswer>;
  close(): Promise<void>;
}

export interface ListedTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly outputSchema?: unknown;
  readonly annotations?: { readonly readOnlyHint?: boolean | undefined } | undefined;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

export interface ToolCall {
  readonly name: string;
  readonly arguments?: Record<string, unknown>;
  readonly _meta?: Record<string, unknown>;
}

export interface ToolAnswer {
  readonly content: readonly { readonly type: string; readonly text?: string | undefined }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean | undefined;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

/** A client mode: which SDK, and which era it ends up in against a gateway that serves both. */
export interface ClientMode {
  readonly era: 'legacy' | 'modern';
  /** `fetch`: by which the requests go out. */
  connect(url: string, fetch?: Fetch): Promise<McpClient>;
}

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const INFO = { name: 'official-client', version: '1.0.0' } as const;

/** The 1.x client, connected. */
export async function connectFirst(url: string, fetch: Fetch = globalThis.fetch): Promise<FirstClient> {
  const client = new FirstClient(INFO);
  await client.connect(new FirstTransport(new URL(url), { fetch }));
  return client;
}

/** The 2.x client, connected; without a mode it opens with `initialize` like its predecessors. */
export async function connectSecond(
  url: string,
  mode: VersionNegotiationMode = 'legacy',
  fetch: Fetch = globalThis.fetch,
): Promise<Client> {
  const client = new Client(INFO, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch }));
  return client;
}

/** The four ways in which agents connect. */
export const CLIENT_MODES: Readonly<Record<string, ClientMode>> = {
  'the 1.x client': {
    era: 'legacy',
    connect: async (url, fetch) => spelled(await connectFirst(url, fetch)),
  },
  'the 2.x client': {
    era: 'legacy',
    connect: async (url, fetch) => spelled(await connectSecond(url, undefined, fetch)),
  },
  'the 2.x client that negotiates': {
    era: 'modern',
    connect: async (url, fetch) => spelled(await connectSecond(url, 'auto', fetch)),
  },
  'the 2.x client pinned to 2026-07-28': {
    era: 'modern',
    connect: async (url, fetch) => spelled(await connectSecond(url, { pin: '2026-07-28' }, fetch)),
  },
};

/** What both SDKs have in common. */
interface Official {
  listTools(): Promise<{ readonly tools: readonly ListedTool[] }>;
  callTool(call: { name: string; arguments?: Record<string, unknown> }): Promise<object>;
  close(): Promise<void>;
}

function spelled(client: Official): McpClient {
  return {
    listTools: async () => (await client.listTools()).tools,
    callTool: async (call) => (await client.callTool({ ...call })) as ToolAnswer,
    close: () => client.close(),
  };
}
