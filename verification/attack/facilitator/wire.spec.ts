import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { after, before, describe } from 'node:test';
import { type RawBackend, type RawRequest, rawBackend } from '../../../spec/backend/raw-backend.ts';
import { attack, measured, proven } from '../catalogue.ts';
import { assertHonest, BEARER, type LiarStage, nonceOf, openLiarStage, PRICE_UNITS, payerOf } from './stage.ts';

const NETWORK = 'eip155:31337';

type Question = 'verify' | 'settle';

/** The part of a request to the facilitator that is checked. */
interface Asked {
  readonly paymentPayload: { readonly accepted: unknown };
  readonly paymentRequirements: { readonly payTo: string; readonly amount: string };
}

/** The values that a hostile facilitator answers with. */
interface Situation {
  readonly payer: string;
  readonly network: string;
  /** An address that must receive no request. */
  readonly canary: string;
}

/** Bytes on the wire, or an action, instead of an answer to verify or settle. */
type Wording = (at: Situation) => string | ((socket: Socket) => void);

/** A verdict that approves verify and settle; its transaction does not exist. */
function yes({ payer, network }: Situation, more: object = {}): string {
  const transaction = `0x${'ab'.repeat(32)}`;
  return JSON.stringify({ isValid: true, success: true, transaction, network, payer, ...more });
}

/** A verdict that refuses verify and settle. */
function no(reason: string, more: object = {}): string {
  return JSON.stringify({ isValid: false, success: false, invalidReason: reason, errorReason: reason, ...more });
}

function framed(body: string, head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json'): string {
  return `${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const redirect =
  (status: number, to: (at: Situation) => string): Wording =>
  (at) =>
    framed(yes(at), `HTTP/1.1 ${status} Go\r\nlocation: ${to(at)}`);
const inside: Wording = () => framed(no(`see ${BEARER}`));

/** Extra members of a verdict, which the gateway must not copy. */
const EXTRA = {
  extra: { payTo: '0xdead', name: BEARER },
  accepts: [{ payTo: '0xdead' }],
  paymentRequirements: { amount: '0' },
  status: 200,
  code: BEARER,
  message: BEARER,
  headers: { 'set-cookie': BEARER },
  receipt: { delivered: true },
  ['__proto__x']: { isValid: true },
};

/** Facilitators that break HTTP or JSON, or do not answer. */
const WORDINGS: readonly (readonly [what: string, wording: Wording])[] = [
  ['yes, with fields for our own answers', (at) => framed(yes(at, EXTRA))],
  ['no, with fields for our own answers', () => framed(no('insufficient_funds', EXTRA))],
  ['no, for the bearer token', inside],
  ['no, in words that end a line', () => framed(no(`bad\r\nx-evil: ${BEARER}`))],
  ['a page that quotes the request', () => framed(`<pre>authorization: Bearer ${BEARER}</pre>`, 'HTTP/1.1 500 No')],
  ['a reason phrase with the token', (at) => framed(yes(at), `HTTP/1.1 502 ${BEARER}`)],
  [
    'cookies and challenges',
    (at) => framed(yes(at), `HTTP/1.1 401 No\r\nwww-authenticate: Bearer ${BEARER}\r\nset-cookie: a=b`),
  ],
  ['300 early hints, then yes', (at) => `${'HTTP/1.1 103 Early\r\n\r\n'.repeat(300)}${framed(yes(at))}`],
  ['101', () => 'HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'],
  ['204 with a yes in it', (at) => framed(yes(at), 'HTTP/1.1 204 No Content')],
  ['304', () => 'HTTP/1.1 304 Not Modified\r\n\r\n'],
  ...[301, 302, 303, 307, 308].map((status): [string, Wording] => [
    `${status} to another server`,
    redirect(status, ({ canary }) => `${canary}/settle`),
  ]),
  ['302 to cloud metadata', redirect(302, () => 'http://169.254.169.254/latest/meta-data/')],
  ['307 to a file', redirect(307, () => 'file:///etc/passwd')],
  ['a refresh', (at) => framed(yes(at), `HTTP/1.1 503 No\r\nrefresh: 0; url=${at.canary}`)],
  ['a yes behind a no', (at) => framed(no('insufficient_funds')) + framed(yes(at))],
  ['a length and chunks', (at) => framed(yes(at), 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked')],
  ['two lengths', (at) => framed(yes(at), 'HTTP/1.1 200 OK\r\ncontent-length: 2')],
  ['a folded header', (at) => framed(yes(at), 'HTTP/1.1 200 OK\r\nx-folded: a\r\n b')],
  ['NUL in a header', (at) => framed(yes(at), 'HTTP/1.1 200 OK\r\nx-nul: a\0b')],
  ['3,000 headers', (at) => framed(yes(at), `HTTP/1.1 200 OK\r\n${'x-many: y\r\n'.repeat(3_000)}x-last: y`)],
  ['a head of 100 KB', (at) => framed(yes(at), `HTTP/1.1 200 OK\r\nx-large: ${'y'.repeat(100_000)}`)],
  ['HTTP/0.9', (at) => (socket) => void socket.end(yes(at))],
  ['a status of letters', (at) => framed(yes(at), 'HTTP/1.1 2OO OK')],
  ['half a yes, then an end', (at) => (socket) => void socket.end(framed(yes(at)).slice(0, -9))],
  [
    'half a yes, then a reset',
    (at) => (socket) => void socket.write(framed(yes(at)).slice(0, -9), () => socket.resetAndDestroy()),
  ],
  ['a reset in the head', () => (socket) => void socket.write('HTTP/1.1 2', () => socket.resetAndDestroy())],
  ['an end without a word', () => (socket) => void socket.end()],
  ['a reset without a word', () => (socket) => void socket.resetAndDestroy()],
  ['a body without end', () => flood],
  ['JSON with a byte order mark', (at) => framed(`\ufeff${yes(at)}`)],
  ['JSON with comments', (at) => framed(`/* yes */${yes(at)}`)],
  ['numbers beyond a double', (at) => framed(yes(at, { isValid: 1e3 }).replace('1000', '1e999'))],
  ['a hash with a newline', (at) => framed(yes(at, { transaction: `0x${'ab'.repeat(32)}\n` }))],
  ['a hash of zeros', (at) => framed(yes(at, { transaction: `0x${'0'.repeat(64)}` }))],
  ['a network that resembles the configured one', (at) => framed(yes(at, { network: `${at.network}7` }))],
  ['a network in capitals', (at) => framed(yes(at, { network: at.network.toUpperCase() }))],
  ['a payer of zeros', (at) => framed(yes(at, { payer: `0x${'0'.repeat(40)}` }))],
];

function flood(socket: Socket): void {
  socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"isValid":true,"a":"');
  const more = (): void => {
    while (!socket.destroyed && socket.write('x'.repeat(10_000)));
  };
  socket.on('drain', more);
  more();
}

describe('a facilitator that sends hostile bytes', () => {
  const wordings = new Map<string, Readonly<Record<Question, Wording>>>();
  let liar: RawBackend;
  let canary: RawBackend;
  let stage: LiarStage;
  let sold = 0;
  before(async () => {
    canary = await rawBackend((socket) => void socket.end(framed('{"isValid":true,"success":true}')));
    liar = await rawBackend((socket, request) => {
      if (request.head.startsWith('GET')) {
        // The readiness monitor asks for /supported.
        socket.write(framed('{}'));
        return;
      }
      const [question, nonce, payer] = asked(request);
      const wording = wordings.get(nonce)?.[question] ?? (() => framed('{}'));
      const answer = wording({ payer, network: NETWORK, canary: canary.origin });
      if (typeof answer === 'string') socket.write(answer);
      else answer(socket);
    });
    stage = await openLiarStage(liar.origin);
  });
  after(async () => {
    await stage.close();
    await Promise.all([liar.close(), canary.close()]);
  });

  const valid: Wording = () => framed('{"isValid":true}');
  const settled =
    (transaction: string): Wording =>
    (at) =>
      framed(yes(at, { transaction }));
  /** The facilitator answers correctly again: the proof gets its answer. */
  const recover = async (proof: string, nonce: string, channel: number): Promise<void> => {
    wordings.set(nonce, { verify: valid, settle: settled(await stage.submit(proof)) });
    await stage.collect(proof, channel);
    sold += 1;
  };

  describe('in any answer', { concurrency: true }, () => {
    for (const [at, [what, wording]] of WORDINGS.entries())
      for (const question of ['verify', 'settle'] as const)
        attack('X11', `/${question} answers with ${what}: nothing is delivered, nothing is lost`, async (context) => {
          const { proof, nonce } = await stage.sign();
          wordings.set(nonce, { verify: valid, settle: wording, [question]: wording });
          const seen = await stage.bring(proof, at);
          assertHonest(seen, false);
          assert.equal(await stage.paid(nonce), false);
          measured(context, 'hostile facilitator answers', 1);
          if (seen.outcome !== 'asked') await recover(proof, nonce, at + 1);
        });
  });

  attack(['X10', 'X11'], 'an unrequested answer waits on the connection: the next buyer does not get it', async () => {
    for (let round = 0; round < 10; round += 1) {
      const [first, second] = [await stage.sign(), await stage.sign()];
      const transaction = await stage.submit(first.proof);
      const approval: Wording = (at) => framed('{"isValid":true}') + framed(yes(at, { transaction }));
      wordings.set(first.nonce, { verify: approval, settle: settled(transaction) });
      wordings.set(second.nonce, { verify: valid, settle: () => framed('{"success":false}') });
      await stage.collect(first.proof, round);
      const seen = await stage.bring(second.proof, round);
      assertHonest(seen, false);
      assert.equal(await stage.paid(second.nonce), false);
      sold += 1;
      await recover(second.proof, second.nonce, round);
    }
  });

  attack('X10', 'only the configured requirement was ever sent to it', () => {
    for (const { head, body } of liar.requests.filter(({ head }) => head.startsWith('POST'))) {
      const { paymentPayload, paymentRequirements } = JSON.parse(body.toString()) as Asked;
      assert.deepEqual(paymentRequirements, paymentPayload.accepted);
      assert.equal(paymentRequirements.payTo, stage.testbed.gateway.config.x402?.payTo);
      assert.equal(paymentRequirements.amount, String(PRICE_UNITS));
      assert.match(head, new RegExp(`authorization: Bearer ${BEARER}`, 'i'));
    }
  });

  attack('X11', 'no redirect was followed, and the token went nowhere else', async (context) => {
    assert.equal(canary.accepted(), 0);
    assert.ok(!(await stage.sinks()).includes(BEARER));
    const paidFor = Number((await stage.testbed.income()) / PRICE_UNITS);
    const delivered = stage.testbed.backend.requests.length;
    assert.deepEqual([paidFor, delivered], [sold, sold]);
    measured(context, 'unpaid deliveries', delivered - paidFor);
    measured(context, 'double settlements', paidFor - sold);
  });
});

describe('what other specs prove about facilitators', () => {
  proven(
    'X12',
    'spec/e2e/near-money.spec.ts',
    'PAYMENT_PROVIDER_UNAVAILABLE 503 before settlement, and the same proof works later',
  );
  proven(
    'X12',
    'spec/e2e/near-money.spec.ts',
    'PAYMENT_SETTLEMENT_FAILED 502 after it: uncertain, with no time at which to sign again, never 402',
  );
  proven(
    'X10',
    'spec/payments/x402/hostile.spec.ts',
    'cannot keep an authorization open that no block can take any more',
  );
  proven(
    'X10',
    'spec/payments/x402/create-rail.spec.ts',
    'lets no facilitator overrule a local check, and does not even ask it',
  );
});

function asked({ head, body }: RawRequest): [question: Question, nonce: string, payer: string] {
  const { paymentPayload } = JSON.parse(body.toString()) as { paymentPayload: unknown };
  const proof = Buffer.from(JSON.stringify(paymentPayload)).toString('base64');
  return [head.startsWith('POST /verify') ? 'verify' : 'settle', nonceOf(proof), payerOf(proof)];
}
