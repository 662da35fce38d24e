import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, afterEach, before, describe, it, mock } from 'node:test';
import { RATE_MS } from '../../src/passthrough/admission.ts';
import { envelopeOf, head, received, statusOf } from '../server/http/raw.ts';
import {
  accepting,
  type Merchant,
  openPassthroughTestbed,
  type PassthroughTestbed,
  startMerchant,
  until,
  WEBSOCKET,
} from './testbed.ts';

/** All places of a kind, and how many of them one client gets. */
const PLACES = 8;
const SHARE = 4;
const [ONE, OTHER] = ['127.0.0.1', '127.0.0.2'];

const upload = head(['POST /up HTTP/1.1', 'Host: shop.example', 'Content-Length: 100000']);
const stream = head(['GET /events HTTP/1.1', 'Host: shop.example']);
const download = head(['GET /endless HTTP/1.1', 'Host: shop.example']);
const webSocket = head(['GET /ws HTTP/1.1', 'Host: a', ...WEBSOCKET]);

describe('what one client takes of the passthrough', () => {
  let merchant: Merchant;
  let testbed: PassthroughTestbed;
  let asked = 0;
  let sockets: Socket[] = [];
  before(async () => {
    merchant = await startMerchant((req, res) => {
      asked += 1;
      if (req.url === '/events') res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      else if (req.url === '/endless') pour(res);
      else if (req.method === 'POST') req.resume().on('end', () => res.end());
      else res.end('page');
    });
    merchant.server.on('upgrade', (req: IncomingMessage, socket: Socket) => {
      socket.on('error', () => undefined).write(accepting(req));
    });
    // Rates are measured between ticks of intervals; nothing else here waits for one.
    mock.timers.enable({ apis: ['setInterval'] });
    const limits = { maxPassthrough: PLACES, maxUpgrades: PLACES };
    testbed = await openPassthroughTestbed({ backendUrl: merchant.url, overrides: { limits } });
  });
  after(async () => {
    mock.timers.reset();
    await testbed.close();
    merchant.close();
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    sockets = [];
    asked = 0;
    for (const name of ['running', 'waiting', 'upgrades_open', 'event_streams'])
      while (!(await testbed.metric(`acg_passthrough_${name}`)).endsWith(' 0'));
  });
  const dialFrom = async (localAddress: string, bytes: string): Promise<Socket> => {
    const socket = connect({ host: ONE, port: Number(new URL(testbed.url).port), localAddress });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    sockets.push(socket);
    socket.write(bytes);
    return socket;
  };
  const statusFor = async (localAddress: string, path = '/page'): Promise<number> => {
    const [answer] = (await once(get(testbed.url + path, { localAddress, agent: false }), 'response')) as [
      IncomingMessage,
    ];
    answer.resume();
    return answer.statusCode ?? 0;
  };
  const firstStatus = async (socket: Socket): Promise<number> => {
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    return statusOf(bytes.toString('latin1'));
  };

  for (const [what, bytes] of [
    ['uploads', upload],
    ['downloads', download],
  ] as const)
    it(`${what}: a share of the places to run`, async () => {
      for (let begun = 0; begun < 2 * PLACES; begun += 1) (await dialFrom(ONE, bytes)).pause();
      await until(() => asked >= SHARE);
      assert.equal(await statusFor(OTHER), 200);
      assert.equal(await testbed.metric('acg_passthrough_running'), `acg_passthrough_running ${SHARE}`);
    });

  it('event streams and WebSockets: a share of places of their own', async () => {
    for (const bytes of [stream, webSocket]) {
      const statuses: number[] = [];
      for (let begun = 0; begun < SHARE; begun += 1) statuses.push(await firstStatus(await dialFrom(ONE, bytes)));
      assert.deepEqual(
        statuses,
        bytes === stream ? [200, 200, 200, 200] : [503, 503, 503, 503],
        'both kinds have the same places',
      );
    }
    assert.equal(await statusFor(ONE), 200, 'they leave the places of requests');
    assert.equal(await statusFor(ONE, '/events'), 503);
    assert.equal(await firstStatus(await dialFrom(OTHER, webSocket)), 101);
    assert.equal(await testbed.metric('acg_passthrough_event_streams'), `acg_passthrough_event_streams ${SHARE}`);
  });

  it('bodies have a least rate once half of the places are taken', async () => {
    const slow = await dialFrom(ONE, upload);
    const answer = received(slow);
    const trickle = async (): Promise<void> => {
      for (let looks = 0; looks < 5; looks += 1) {
        slow.write('x');
        assert.equal(await statusFor(OTHER), 200);
        mock.timers.tick(RATE_MS / 4);
      }
    };
    await until(() => asked > 0);
    await trickle();
    assert.equal(answer(), '', 'there is room');
    for (let begun = 1; begun < SHARE; begun += 1) await dialFrom(ONE, download);
    while (!(await testbed.metric('acg_passthrough_running')).endsWith(` ${SHARE}`));
    await trickle();
    await until(() => answer() !== '');
    assert.equal(statusOf(answer()), 400);
    assert.deepEqual(envelopeOf(answer()), { code: 'INPUT_INVALID', reason: 'request_timeout' });
  });

  it('a Host that is none is refused, also of a WebSocket', async () => {
    for (const host of ['a b', 'x@y', 'evil:99999', 'evil:0', '127.0.0.1:1/x?', '[::g]', 'a..b']) {
      const answer = received(await dialFrom(ONE, head(['GET /page HTTP/1.1', `Host: ${host}`])));
      await until(() => answer() !== '');
      assert.equal(statusOf(answer()), 400, host);
      assert.equal(envelopeOf(answer())['reason'], 'host_invalid', host);
      const upgrade = await dialFrom(ONE, webSocket.replace('Host: a', `Host: ${host}`));
      assert.equal(await firstStatus(upgrade), 400, host);
    }
    for (const host of ['shop.example', 'my_shop:8402', '[::1]:80', '127.0.0.1', 'shop.example.:443'])
      assert.equal(await firstStatus(await dialFrom(ONE, head(['GET /page HTTP/1.1', `Host: ${host}`]))), 200, host);
  });
});

/** Writes as long as it is read. */
function pour(res: ServerResponse): void {
  const piece = Buffer.alloc(65_536);
  const more = (): void => {
    while (!res.destroyed && res.write(piece));
  };
  res.on('drain', more);
  more();
}
