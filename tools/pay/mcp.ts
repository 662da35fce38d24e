/** Calls a resource as a tool over MCP, with the official client. */

import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  base64JsonOf,
  type Channel,
  challengeOf,
  jsonOf,
  members,
  type Reply,
  settlementOf,
  waitOf,
  whyOf,
} from './channel.ts';
import type { JsonRpcCall } from './json-rpc-call.ts';

/** Where the published MCP transport of x402 puts a proof and a receipt. */
const PAYMENT = 'x402/payment';
const PAYMENT_RESPONSE = 'x402/payment-response';

export function mcpChannel({ url, resource, input, headers }: JsonRpcCall): Channel {
  return {
    async send(payment) {
      const client = new Client({ name: 'acg-pay', version: '1.0.0' });
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
      try {
        const proof = payment && { _meta: { [PAYMENT]: base64JsonOf(payment.proof) } };
        return replyOf(await client.callTool({ name: resource, arguments: { ...input }, ...proof }));
      } catch (error) {
        // An answer, and not a lost one: there is no such tool, for example.
        if (error instanceof ProtocolError) return refusedCall(error);
        throw error;
      } finally {
        await client.close();
      }
    },
  };
}

type Answer = Awaited<ReturnType<Client['callTool']>>;

function replyOf({ isError = false, content, structuredContent, _meta }: Answer): Reply {
  const [block, sentence] = content;
  const { body, contentType } = contentOf(block);
  // Both have the same terms; some servers write one of them.
  const stated = members(structuredContent)['accepts'] === undefined ? jsonOf(Buffer.from(body).toString()) : undefined;
  const envelope = isError ? (stated ?? structuredContent) : undefined;
  return {
    ok: !isError,
    status: isError ? String(members(envelope)['code'] ?? 'error') : 'delivered',
    why: whyOf(envelope),
    contentType,
    body,
    challenge: challengeOf(envelope, envelope, sentence?.type === 'text' ? sentence.text : undefined),
    settlement: settlementOf(_meta?.[PAYMENT_RESPONSE]),
    againInMs: waitOf(envelope, undefined),
  };
}

function refusedCall({ code, message }: ProtocolError): Reply {
  const nothing = {
    why: undefined,
    contentType: undefined,
    challenge: undefined,
    settlement: undefined,
    againInMs: undefined,
  };
  return { ok: false, status: `${code} ${message}`, body: new Uint8Array(), ...nothing };
}

/** Text as it stands, bytes decoded; any other block as its JSON. */
function contentOf(block: Answer['content'][number] | undefined): Pick<Reply, 'body' | 'contentType'> {
  if (block === undefined) return { body: new Uint8Array(), contentType: undefined };
  if (block.type === 'text') return { body: Buffer.from(block.text), contentType: undefined };
  if (block.type === 'image' || block.type === 'audio')
    return { body: Buffer.from(block.data, 'base64'), contentType: block.mimeType };
  if (block.type === 'resource' && 'blob' in block.resource)
    return { body: Buffer.from(block.resource.blob, 'base64'), contentType: block.resource.mimeType };
  return { body: Buffer.from(JSON.stringify(block)), contentType: 'application/json' };
}
