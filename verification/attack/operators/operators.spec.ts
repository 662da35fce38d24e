import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, describe, mock } from 'node:test';
import { startHostileFacilitator } from '../../../spec/support/hostile-facilitator.ts';
import { GatewayError } from '../../../src/errors.ts';
import { authenticate } from '../../../src/operator/api/routes.ts';
import { attack } from '../catalogue.ts';
import { openTarget, type ProofMaker, proofMaker, type Target } from '../target.ts';
import { answerTo, ENTRANCES, HOST, head, JSON_TYPE } from '../wire/conversation.ts';

const TOKEN = 'operator-token-0123456789abcdefghijklmnopqrstuvwxyz';

describe('the operator token', () => {
  attack('O1', 'is compared in constant time, as a digest of one length, with every configured token', () => {
    // The time of a comparison cannot be measured on tokens this short; its arguments can be
    // checked.
    const compared = mock.method(crypto, 'timingSafeEqual');
    syncBuiltinESMExports();
    try {
      const tokens = [TOKEN, `${TOKEN}-next`];
      const middleware = authenticate(tokens, { wrongTries: { note: () => undefined } });
      const presented = [
        TOKEN,
        `${TOKEN}-next`,
        `X${TOKEN.slice(1)}`,
        `${TOKEN.slice(0, -1)}X`,
        TOKEN.slice(0, 8),
        'x',
      ];
      for (const [at, token] of presented.entries()) {
        const authorization = `Bearer ${token}`;
        const request = { headers: { authorization }, rawHeaders: ['Authorization', authorization], socket: {} };
        compared.mock.resetCalls();
        let passed = false;
        try {
          middleware(
            request as unknown as Parameters<typeof middleware>[0],
            {} as Parameters<typeof middleware>[1],
            () => {
              passed = true;
            },
          );
        } catch (thrown) {
          if (!(thrown instanceof GatewayError)) throw thrown;
        }
        assert.equal(passed, at < tokens.length);
        const lengths = compared.mock.calls.map(({ arguments: [one, other] }) => [one.byteLength, other.byteLength]);
        assert.deepEqual(lengths, [
          [32, 32],
          [32, 32],
        ]);
      }
    } finally {
      compared.mock.restore();
      syncBuiltinESMExports();
    }
  });
});

describe('routes that agents must not reach', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target?.stop());

  attack('O11', 'the process runs without a debugger, and the image starts none', () => {
    assert.doesNotMatch(readFileSync(`/proc/${target.gateway.pid}/cmdline`, 'utf8'), /--(?:inspect|debug)/);
    const dockerfile = readFileSync(new URL('../../../deploy/Dockerfile', import.meta.url), 'utf8');
    assert.doesNotMatch(dockerfile, /--inspect|--heapsnapshot|--debug/);
    assert.match(dockerfile, /--disable-proto=delete/);
  });

  attack('O11', 'a management listener on loopback is reachable over no other address of the machine', async () => {
    const outside = Object.values(networkInterfaces())
      .flatMap((addresses = []) => addresses)
      .filter(({ internal, family }) => !internal && family === 'IPv4');
    const port = Number(new URL(target.managementUrl).port);
    for (const { address } of outside) {
      const reached = await new Promise<boolean>((resolve) => {
        const socket = connect({ host: address, port });
        socket.once('connect', () => resolve(true));
        socket.once('error', () => resolve(false));
        socket.once('close', () => socket.destroy());
        socket.unref();
      });
      assert.equal(reached, false, address);
    }
  });
});

/** Texts that reveal internals: stacks, paths, own addresses, messages of libraries. */
const INSIDES =
  /\n\s+at |node:|node_modules|\.ts\b|\.js:\d|file:\/\/|\/(?:home|root|tmp|usr|work|app|src)\/|https?:\/\/127\.0\.0\.1:(?!PUBLIC)|ECONN|ENOTFOUND|EACCES|undici|anvil|viem|sqlite|redis:\/\/|planted/i;

describe('refusals of a gateway whose backend and facilitator are unreachable', () => {
  let target: Target;
  let proofs: ProofMaker;
  before(async () => {
    const hostile = await startHostileFacilitator('eip155:31337');
    target = await openTarget({
      backend: { baseUrl: 'http://127.0.0.1:1' },
      payments: {
        x402: { facilitator: { mode: 'remote', url: `${hostile.url}/planted-path`, privateKey: undefined } },
      },
    });
    proofs = await proofMaker(target);
    await hostile.stop();
  });
  after(() => target?.stop());

  attack('O9', 'hold no stack, path, address or message of a library, on any channel', async () => {
    const texts: string[] = [];
    const ask = async (bytes: string | Buffer): Promise<void> => {
      const answer = await answerTo(target.url, bytes);
      const fields = JSON.stringify([...answer.headers]);
      texts.push(`${fields}\n${answer.body.toString()}`.replaceAll(target.url, 'http://PUBLIC'));
    };
    const invoke = (id: string, input: string, ...lines: readonly string[]): string =>
      head(`POST /api/resources/${id}/invoke HTTP/1.1`, HOST, JSON_TYPE, `Content-Length: ${input.length}`, ...lines) +
      input;
    await ask(invoke('free_echo', '{}'));
    await ask(invoke('free_market_report', '{"city":"Berlin"}'));
    await ask(invoke('free_market_report', '{"city":7}'));
    await ask(invoke('echo', '{}', `Payment-Signature: ${await proofs.proof('echo')}`));
    await ask(invoke('echo', '{}', 'Payment-Signature: bm90aGluZw=='));
    await ask(invoke('nowhere', '{'));
    for (const path of [
      '/%',
      '/%ff',
      '/..%2f..%2fetc/passwd',
      '/api/resources/%00/invoke',
      '/nowhere',
      '/.env',
      '/__proto__',
    ])
      await ask(head(`GET ${path} HTTP/1.1`, HOST));
    for (const entrance of ENTRANCES)
      for (const input of ['{}', '{"a":', '[]', '"text"', '{"_payment":{}}', '{"_payment":"bm90aGluZw=="}'])
        await ask(entrance.request(entrance.around(input)));
    for (const query of ['cursor=x', 'limit=-1', 'delivered=maybe', `requestId=${encodeURIComponent("' OR 1=1")}`])
      await ask(head(`GET /api/events?${query} HTTP/1.1`, HOST, `Authorization: Bearer ${target.adminToken}`));
    assert.ok(
      texts.some((text) => text.includes('BACKEND_ERROR')) &&
        texts.some((text) => text.includes('PAYMENT_PROVIDER_UNAVAILABLE')),
    );
    for (const text of texts) assert.doesNotMatch(text, INSIDES);
  });
});
