import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { CART, checkoutProtocol, rightHeaders, SEALED } from '../adapters/acp/testbed.ts';
import { closeOf, dial, head } from '../server/http/raw.ts';
import { type CheckoutBackend, startCheckoutBackend } from '../support/acp/checkout-backend.ts';
import { NO_CHAIN } from '../support/config.ts';
import { OPERATOR_TOKEN, openGateway, type TestGateway } from '../support/gateway.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { message, tool } from '../telemetry/callers.ts';

/** More of them: ACG_PACKETS=100000. */
const PACKETS = Number(process.env['ACG_PACKETS'] ?? 1_500);
const AT_ONCE = 48;
/** A failure names its seed: given here, it runs again. */
const SEED = Number(process.env['ACG_SEED'] ?? Date.now() % 2 ** 31);
const WITHIN_MS = 10_000;

const JSON_TYPE = ['Content-Type: application/json', 'A2A-Version: 1.0'];
const request = (line: string, fields: readonly string[] = [], body = ''): string =>
  head([`${line} HTTP/1.1`, 'Host: shop', ...fields, ...(body === '' ? [] : [`Content-Length: ${body.length}`])]) +
  body;
const websocket = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: YQ=='];
const checkout = (): string =>
  request(
    'POST /acp/checkout_sessions',
    Object.entries(rightHeaders('POST')).map(([name, value]) => `${name}: ${value}`),
    JSON.stringify(CART),
  );

/** One request of each kind that takes a place somewhere, and bytes that are none. */
const PIECES: readonly (() => string)[] = [
  () => request('GET /health'),
  () => request('GET /free'),
  () => request('GET /dear'),
  () => request('POST /api/resources/free/invoke', JSON_TYPE, '{}'),
  () => request('POST /api/resources/dear/invoke', [...JSON_TYPE, 'PAYMENT-SIGNATURE: e30='], '{}'),
  () => request('POST /mcp', JSON_TYPE, tool('free', {})),
  () => request('POST /a2a', JSON_TYPE, message('free', {})),
  checkout,
  () => request('GET /passed'),
  () => request('GET /passed/slowly'),
  () => request('GET /passed/events'),
  () => request('POST /passed', ['Transfer-Encoding: chunked']),
  () => '3\r\nabc\r\n0\r\n\r\n',
  () => request('GET /passed/socket', websocket),
  () => request('GET /api/events/stream', [`Authorization: Bearer ${OPERATOR_TOKEN}`]),
  () => request('CONNECT shop:443'),
  () => request('GET /free', ['Expect: 100-continue', 'Connection: close']),
  () => 'GET /free HTTP/1.1\r\nHost: sh',
  () => '\0\r\n\r\n',
];

type End = 'cut' | 'end' | 'answered';
const packets = fc.record({
  pieces: fc.array(fc.nat(PIECES.length - 1), { minLength: 1, maxLength: 6 }),
  end: fc.constantFrom<End>('cut', 'end', 'answered'),
  afterMs: fc.nat(20),
});

describe('places of calls, connections and buffers', () => {
  let gateway: TestGateway;
  let checkouts: CheckoutBackend;
  const backend = createServer((req, res) => {
    req.resume();
    if (req.url === '/passed/events') res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    else if (req.url === '/passed/slowly') setTimeout(() => res.end('{}'), 15);
    else res.setHeader('content-type', 'application/json').end('{}');
  });
  backend.on('upgrade', (_req, socket) => {
    socket
      .on('error', () => undefined)
      .write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.resume().once('end', () => socket.end());
  });

  before(async () => {
    backend.listen(0, '127.0.0.1');
    await once(backend, 'listening');
    checkouts = await startCheckoutBackend();
    const selling = (path: string, pricing: object) => ({
      name: path,
      expose: ['http', 'mcp', 'a2a', 'origin'],
      inputSchema: { type: 'object' },
      backend: { method: 'GET', path },
      pricing,
    });
    gateway = await openGateway({
      chain: NO_CHAIN,
      backendUrl: `http://127.0.0.1:${(backend.address() as AddressInfo).port}`,
      facilitator: { mode: 'local' },
      overrides: {
        backend: { passthrough: { enabled: true } },
        storage: SEALED,
        protocols: {
          mcp: { enabled: true },
          a2a: { enabled: true },
          acp: checkoutProtocol({ backend: { baseUrl: checkouts.url } }),
        },
        resources: {
          free: selling('/free', { type: 'free' }),
          dear: selling('/dear', { type: 'fixed', amount: '1', currency: 'TUSD' }),
        },
      },
    });
  });
  after(async () => {
    await gateway.close();
    await checkouts.stop();
    backend.close();
    backend.closeAllConnections();
  });

  it(`come back after ${PACKETS} random pipelines, cuts and upgrades`, async (t) => {
    t.diagnostic(`seed ${SEED}`);
    const drawn = fc.sample(packets, { numRuns: PACKETS, seed: SEED });
    const line = async (): Promise<void> => {
      for (let packet = drawn.pop(); packet !== undefined; packet = drawn.pop()) {
        const { pieces, end, afterMs } = packet;
        const socket = await dial(gateway.url);
        socket.resume().write(pieces.map((at) => PIECES[at]?.() ?? '').join(''));
        if (end === 'end') socket.end();
        if (end === 'answered') await Promise.race([once(socket, 'data'), delay(200)]);
        await Promise.race([closeOf(socket), delay(afterMs)]);
        socket.destroy();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, line));
    const until = Date.now() + WITHIN_MS;
    for (let taken = await places(gateway); taken.length > 0; taken = await places(gateway))
      assert.ok(Date.now() < until, `seed ${SEED}: ${taken.join(', ')}`);
  });
});

/** Gauges that are 0 while nothing runs. */
const PLACES: ReadonlySet<string> = new Set([
  'acg_answer_buffer_bytes',
  'acg_answer_buffer_waiting',
  'acg_backend_held_connections',
  'acg_calls_in_flight',
  'acg_calls_waiting',
  'acg_event_streams',
  'acg_fence_held',
  'acg_passthrough_event_streams',
  'acg_passthrough_running',
  'acg_passthrough_upgrades_open',
  'acg_passthrough_waiting',
  'acg_requests_in_flight',
  'acg_waiting_entries',
]);

/** Those of them that are above 0. */
async function places({ managementUrl }: TestGateway): Promise<readonly string[]> {
  const text = await readMetrics(managementUrl);
  return text.split('\n').filter((line) => {
    const name = /^acg_\w+/.exec(line)?.[0] ?? '';
    return PLACES.has(name) && !line.endsWith(' 0');
  });
}
