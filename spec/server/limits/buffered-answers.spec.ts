import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { openGateway, type TestGateway } from '../../support/gateway.ts';

const BUDGET_BYTES = 1_048_576;
const LARGE = 'x'.repeat(600_000);

/** A backend whose large answers stop half-way until released; others are answered at once. */
interface SlowBackend {
  readonly server: Server;
  readonly url: string;
  /** Resolves when a large answer began; the result sends its rest. */
  begun(): Promise<() => void>;
}

async function startSlowBackend(): Promise<SlowBackend> {
  const begun: (() => void)[] = [];
  const arrivals: ((finish: () => void) => void)[] = [];
  const server = createServer((request, response: ServerResponse) => {
    request.resume();
    if (!request.url?.startsWith('/bytes')) {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': String(LARGE.length) });
    response.write(LARGE.slice(0, 1_000));
    const finish = (): void => void response.end(LARGE.slice(1_000));
    const waiting = arrivals.shift();
    if (waiting === undefined) begun.push(finish);
    else waiting(finish);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    begun: () => {
      const finish = begun.shift();
      return finish === undefined ? new Promise((resolve) => arrivals.push(resolve)) : Promise.resolve(finish);
    },
  };
}

describe('large answers inside messages', () => {
  let chain: Chain;
  let backend: SlowBackend;
  let gateway: TestGateway;
  before(async () => {
    [chain, backend] = await Promise.all([startChain(), startSlowBackend()]);
    const overrides = { protocols: { mcp: { enabled: true } }, limits: { maxBufferedBytes: BUDGET_BYTES } };
    gateway = await openGateway({ chain, backendUrl: backend.url, facilitator: { mode: 'local' }, overrides });
  });
  after(async () => {
    await gateway.close();
    backend.server.closeAllConnections();
    backend.server.close();
    await chain.stop();
  });

  interface ToolAnswer {
    readonly retryAfter: string | null;
    readonly result: { readonly isError?: boolean; readonly structuredContent?: { readonly code?: string } };
  }
  const call = async (name: string, signal?: AbortSignal): Promise<ToolAnswer> => {
    const response = await fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } }),
      ...(signal === undefined ? {} : { signal }),
    });
    const { result } = (await response.json()) as Pick<ToolAnswer, 'result'>;
    return { retryAfter: response.headers.get('retry-after'), result };
  };

  it('wait for memory, and the next one gets it when the first is sent; small ones need none', async () => {
    const first = call('free_bytes');
    const finishFirst = await backend.begun();
    const second = call('free_bytes');
    const finishSecond = await backend.begun();
    finishSecond();
    assert.equal((await call('cities')).result.isError, undefined);
    finishFirst();
    assert.deepEqual([(await first).result.isError, (await second).result.isError], [undefined, undefined]);
  });

  it('are refused when none is free in time, with retry-after', async () => {
    const first = call('free_bytes');
    const finishFirst = await backend.begun();
    const { retryAfter, result } = await call('free_bytes');
    assert.deepEqual([result.isError, result.structuredContent?.code, retryAfter], [true, 'GATEWAY_BUSY', '1']);
    finishFirst();
    assert.equal((await first).result.isError, undefined);
    await backend.begun();
  });

  it('give their memory back when their caller leaves', async () => {
    const leaving = new AbortController();
    const first = call('free_bytes', leaving.signal).catch(() => undefined);
    await backend.begun();
    const second = call('free_bytes');
    const finishSecond = await backend.begun();
    leaving.abort();
    await first;
    finishSecond();
    assert.equal((await second).result.isError, undefined);
  });

  it('over plain HTTP are streamed, and need none', async () => {
    const first = call('free_bytes');
    const finishFirst = await backend.begun();
    const streamed = gateway.invoke('free_bytes');
    const finishStreamed = await backend.begun();
    finishStreamed();
    assert.equal((await (await streamed).text()).length, LARGE.length);
    finishFirst();
    await first;
  });
});
