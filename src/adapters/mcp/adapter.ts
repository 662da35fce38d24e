/**
 * The MCP adapter: one stateless handler for both eras (mcp 1). Everything but `tools/call` is
 * answered here; a call goes on to the pipeline.
 */

import type { RequestHandler, Response } from 'express';
import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import { invokeUrl } from '../../payments/x402/wire/challenge.ts';
import { receiveCall } from '../../pipeline/call.ts';
import type { Catalogue } from '../../resources/catalogue.ts';
import type { ListedResource } from '../../resources/listing.ts';
import { AUTHORIZATION_MEMBER, PAYMENT_MEMBER } from '../../resources/schemas/keywords.ts';
import { type MirroredParameter, mirroredParameters, toolInput, toolNames } from '../../resources/tool-form.ts';
import { callIdOf, requestIdOf } from '../../server/http/access-record.ts';
import { type HeaderReading, readHeader, readJsonBytes, singleHeader } from '../../server/http/request.ts';
import { COPIED_BYTES, clientGone } from '../../server/http/respond.ts';
import type { AnswerBudget } from '../../server/limits/load-shedding.ts';
import {
  carriedKey,
  carriedMandate,
  carriedProof,
  memberMandate,
  memberProof,
  oneMandate,
  oneProof,
} from '../extract-credentials.ts';
import { type RpcId, resultText, sendRpc, sendRpcError } from '../json-rpc/message.ts';
import {
  badParams,
  differingHeader,
  LEGACY_VERSIONS,
  type McpRequest,
  MODERN_VERSION,
  mismatch,
  readMessage,
} from './parse-request.ts';
import { mcpResponseWriter, resultWriter } from './response-writer.ts';
import { discoverResult, type ServerInfo, toolPages } from './tools.ts';

interface McpParts {
  readonly catalogue: Pick<Catalogue, 'byId' | 'listed'>;
  readonly merchant: { readonly id: string; readonly name: string; readonly publicBaseUrl: string };
  /** The gateway's version, not that of MCP. */
  readonly version: string;
  readonly budget: AnswerBudget;
}

const INSTRUCTIONS =
  'Tools with a price answer a call without payment with isError and the x402 terms in structuredContent. Sign one entry of ' +
  'accepts and repeat the same call with the PaymentPayload in _meta["x402/payment"], or its base64 in the argument _payment. Tools ' +
  'that need an AP2 mandate answer with the checkout to make it for in authorization; it goes into the argument _authorization. When ' +
  'an answer says that you have paid, or that the settlement is uncertain, send the same payment again and do not sign a new one.';

const UNKNOWN_CURSOR = 'this cursor was not issued here, or the list has changed: begin it again without a cursor.';
const CLOSE = Buffer.from('}');

export function mcpAdapter({ catalogue, merchant, version, budget }: McpParts): RequestHandler {
  const server: ServerInfo = { name: merchant.id, title: merchant.name, version };
  const offered = catalogue.listed.filter(({ exposedVia }) => exposedVia.includes('mcp'));
  const { tools, byName } = toolsOf(offered);
  const lists = toolPages(tools, server);
  const writers = { legacy: resultWriter('legacy', server), modern: resultWriter('modern', server) };
  const discovered = discoverResult([MODERN_VERSION], INSTRUCTIONS, server);
  const mirrored = mirroredById(offered);

  /** Answers every method but `tools/call`. */
  const answer = (res: Response, { era, id, method, params }: McpRequest): void => {
    if (method === 'tools/list') {
      const page = lists[era].at(params['cursor']);
      if (page === undefined) sendRpcError(res, 200, id, badParams(UNKNOWN_CURSOR));
      else sendRpc(res, 200, listText(id, page));
    } else if (method === 'initialize') {
      const result = JSON.stringify(initializeResult(params['protocolVersion'], server));
      sendRpc(res, 200, resultText(id, result));
    } else sendRpc(res, 200, resultText(id, method === 'server/discover' ? discovered : '{}'));
  };

  return async function receiveMcp(req, res, next) {
    const left = clientGone(res);
    const bytes = await readJsonBytes(req, res);
    // `startedAt` follows the body, which has the proof: a slow sender must not look like a caller
    // who already waited for a running call.
    const startedAt = performance.now();
    const headerOf = (name: string): HeaderReading => readHeader(req, name);
    const reading = readMessage(bytes, headerOf);
    if (reading.kind === 'notification') {
      res.writeHead(202, { 'content-length': 0 });
      res.end();
      return;
    }
    if (reading.kind === 'refused') return sendRpcError(res, reading.status, reading.id, reading.error);
    const { request } = reading;
    if (request.method !== 'tools/call') return answer(res, request);
    const { era, id, params, meta } = request;
    const { name, arguments: given = {} } = params;
    if (typeof name !== 'string' || !isObject(given)) {
      const what = typeof name === 'string' ? 'arguments must be an object.' : 'name must be a string.';
      return sendRpcError(res, 200, id, badParams(what));
    }
    const { id: resourceId, read } = byName.get(name) ?? { id: name };
    const input = read === undefined ? given : read(given);
    const differing = era === 'modern' ? differingHeader(mirrored.get(resourceId) ?? [], input, headerOf) : undefined;
    if (differing !== undefined) return sendRpcError(res, 400, id, mismatch(differing));
    const requestId = requestIdOf(res);
    const call = {
      ...{ id, era, requestId, resourceId, write: writers[era] },
      resourceUrl: invokeUrl(merchant.publicBaseUrl, resourceId),
      fitsOutput: era === 'modern' ? catalogue.byId.get(resourceId)?.fitsOutput : undefined,
    };
    receiveCall(res, {
      stage: 'received',
      requestId,
      callId: callIdOf(res),
      channel: 'mcp',
      resourceId,
      input,
      rawInput: undefined,
      proof: oneProof(memberProof(input[PAYMENT_MEMBER]), memberProof(meta['x402/payment']), carriedProof(req)),
      mandate: oneMandate(
        carriedMandate(req),
        memberMandate(input[AUTHORIZATION_MEMBER]),
        memberMandate(meta['agent-commerce/authorization']),
      ),
      idempotencyKey: carriedKey(req),
      trace: {
        traceparent: textMember(meta['traceparent']) ?? singleHeader(req, 'traceparent'),
        tracestate: textMember(meta['tracestate']) ?? singleHeader(req, 'tracestate'),
      },
      responseWriter: mcpResponseWriter(res, call, budget),
      startedAt,
      left,
    });
    next();
  };
}

/** The version that the client asked for when it is served, else the newest of the era. */
function initializeResult(requested: Json | undefined, server: ServerInfo): object {
  const known = typeof requested === 'string' && LEGACY_VERSIONS.includes(requested);
  return {
    protocolVersion: known ? requested : LEGACY_VERSIONS[0],
    capabilities: { tools: {} },
    serverInfo: server,
    instructions: INSTRUCTIONS,
  };
}

/** The resource behind the name of a tool. */
interface ToolReading {
  readonly id: string;
  /** Gives arguments their true names. */
  readonly read?: ((input: JsonObject) => JsonObject) | undefined;
}

/** Resources under the names of their tools. `byName`: tools with a changed name or arguments. */
function toolsOf(offered: readonly ListedResource[]): {
  readonly tools: readonly ListedResource[];
  readonly byName: ReadonlyMap<string, ToolReading>;
} {
  const names = toolNames(offered.map(({ id }) => id));
  const tools: ListedResource[] = [];
  const byName = new Map<string, ToolReading>();
  for (const resource of offered) {
    const { id } = resource;
    const name = names.get(id) ?? id;
    const { schema, read } = toolInput(resource.inputSchema);
    tools.push({ ...resource, id: name, inputSchema: schema });
    if (name !== id || read !== undefined) for (const one of [id, name]) byName.set(one, { id, read });
  }
  return { tools, byName };
}

/** The mirrored arguments of the tools that have some. */
function mirroredById(offered: readonly ListedResource[]): ReadonlyMap<string, readonly MirroredParameter[]> {
  const found = offered.map(({ id, inputSchema }) => [id, mirroredParameters(inputSchema)] as const);
  return new Map(found.filter(([, parameters]) => parameters.length > 0));
}

/** The bytes of a page are made once; only the id before them differs. */
function listText(id: RpcId, page: Buffer): string | Buffer {
  if (page.byteLength <= COPIED_BYTES) return resultText(id, page.toString());
  return Buffer.concat([Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`), page, CLOSE]);
}

/** A member of `_meta`: its trace context (2026-07-28) precedes that of the HTTP headers. */
function textMember(member: Json | undefined): string | undefined {
  return typeof member === 'string' ? member : undefined;
}
