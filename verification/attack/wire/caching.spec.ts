// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, describe } from 'node:test';
import { answer, type RawBackend, rawBackend } from '../../../spec/backend/raw-backend.ts';
import { createBuyer } from '../../../spec/support/buyer.ts';
import { bytesOf, serveHttp } from '../../../spec/support/http-server.ts';
import type { Reply } from '../../../tools/pay/channel.ts';
import { openChannel, type TargetOptions } from '../../../tools/pay/target.ts';
import { attack, proven } from '../catalogue.ts';
import { openTarget, type Target } from '../target.ts';

/** A backend that wants its answers cached. */
const CACHED_FIELDS = [
  'HTTP/1.1 200 OK',
  'content-type: application/json',
  'cache-control: public, max-age=86400, immutable, s-maxage=86400',
  'expires: Thu, 01 Jan 2099 00:00:00 GMT',
  'surrogate-control: max-age=86400',
  'cdn-cache-control: max-age=86400',
  'etag: "paid"',
].join('\r\n');

describe('a cache that keeps too much', () => {
  let backend: RawBackend;
  let target: Target;
  let cache: SharedCache;
  let delivered = 0;
  before(async () => {
    backend = await rawBackend((socket) => {
      delivered += 1;
      answer(socket, JSON.stringify({ delivered }), CACHED_FIELDS);
    });
    target = await openTarget({ backend: { baseUrl: backend.origin } });
    cache = await startSharedCache(target.url);
  });
  after(async () => {
    await cache?.stop();
    await target?.stop();
    await backend?.close();
  });

  const invoke = (base: string, id: string, proof?: string): Promise<Response> =>
    fetch(`${base}/api/resources/${id}/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(proof === undefined ? {} : { 'payment-signature': proof }) },
      body: '{}',
    });

  attack('H7', 'the cache keeps a free answer, so it works', async () => {
    const [first, second] = [
      await (await invoke(cache.url, 'free_echo')).text(),
      await (await invoke(cache.url, 'free_echo')).text(),
    ];
    assert.equal(first, second);
    assert.equal(cache.hits(), 1);
  });

  /** One purchase through the cache. */
  async function bought(resource: string, over: Pick<TargetOptions, 'mcp' | 'a2a'>): Promise<Reply> {
    const channel = await openChannel(cache.url, '{}', { resource, ...over });
    const { challenge } = await channel.send();
    const buyer = await createBuyer(target.chain);
    return channel.send({ proof: await buyer.pay(challenge?.document), idempotencyKey: randomUUID() });
  }

  attack('H7', 'a call without a proof gets a 402 through a shared cache, also after others have paid', async () => {
    const hits = cache.hits();
    assert.ok((await bought('echo', {})).ok, 'the 402 was not kept either');
    const stranger = await invoke(cache.url, 'echo');
    assert.equal(stranger.status, 402);
    assert.ok(!(await stranger.text()).includes('delivered'));
    const unpaid = await invoke(cache.url, 'echo', 'bm90IGEgcHJvb2Y=');
    assert.equal(unpaid.status, 402);
    assert.equal(cache.hits(), hits);
  });

  attack('H7', 'a paid answer over MCP and A2A is not kept either', async () => {
    for (const channel of [{ mcp: true }, { a2a: true }] as const) {
      const { ok, settlement, body } = await bought('noisy', channel);
      const [name, text] = [Object.keys(channel).join(), Buffer.from(body).toString()];
      assert.ok(ok && settlement !== undefined && !cache.keeps(settlement.transaction), name);
      assert.ok(text.includes('delivered') && !cache.keeps(JSON.stringify(text).slice(1, -1)), name);
    }
  });

  proven(
    'H7',
    'spec/routes/table.spec.ts',
    '${titleOf(route)} is ${route.status}, with its type and its headers for caches',
  );
});

/** A shared cache before a gateway that keeps everything that RFC 9111 does not forbid. */
interface SharedCache {
  readonly url: string;
  /** Answers that were given without asking the gateway. */
  hits(): number;
  /** Whether any answer that it keeps has this text in its body or its head. */
  keeps(text: string): boolean;
  stop(): Promise<void>;
}

interface Kept {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * Starts one. It keeps all that a shared cache may keep: answers to POST too, by target and body,
 * without `Vary`, of any status, and with a default lifetime where none is given (RFC 9111,
 * sections 3 and 4.2.2).
 */
async function startSharedCache(origin: string): Promise<SharedCache> {
  const kept = new Map<string, Kept>();
  let hits = 0;
  const server = await serveHttp(async ({ request, response, body }) => {
    const key = createHash('sha256').update(`${request.method} ${request.url}\n`).update(body).digest('hex');
    const known = kept.get(key);
    if (known !== undefined) hits += 1;
    const answer = known ?? (await forwarded(origin, request, body));
    if (known === undefined && mayKeep(answer.headers)) kept.set(key, answer);
    response.writeHead(answer.status, answer.headers).end(answer.body);
  });
  return {
    ...server,
    hits: () => hits,
    keeps: (text) =>
      [...kept.values()].some(({ headers, body }) => body.includes(text) || JSON.stringify(headers).includes(text)),
  };
}

/** RFC 9111, 3: no `no-store`, and no `private`, because this cache is shared. */
function mayKeep(headers: http.IncomingHttpHeaders): boolean {
  return !/(?:^|,)\s*(?:no-store|private|no-cache)\s*(?:$|,)/i.test(headers['cache-control'] ?? '');
}

async function forwarded(origin: string, { method, url, headers }: http.IncomingMessage, body: Buffer): Promise<Kept> {
  const request = http.request(`${origin}${url}`, { method, headers });
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const { 'transfer-encoding': _, connection: __, 'keep-alive': ___, ...relayed } = response.headers;
  const bytes = await bytesOf(response);
  return {
    status: response.statusCode ?? 0,
    headers: { ...relayed, 'content-length': String(bytes.length) },
    body: bytes,
  };
}
