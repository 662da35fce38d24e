// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { after, before, describe, mock } from 'node:test';
import { GatewayError } from '../../../src/errors.ts';
import { authenticate } from '../../../src/operator/api/routes.ts';
import { attack, proven, times } from '../catalogue.ts';
import { formOf } from '../forms.ts';
import { openTarget, type Target } from '../target.ts';
import { answerTo } from '../wire/conversation.ts';
import { HOST, head } from '../wire/framing-case.ts';
import type { WireAnswer } from '../wire/http-bytes.ts';

const TOKEN = 'operator-token-0123456789abcdefghijklmnopqrstuvwxyz';
const ROUTES = ['/api/events', '/api/receipts', '/api/events/stream'];
const ROUNDS = times(4_000, 40_000);
/**
 * How far apart the medians may be: a comparison that stops at the first difference exceeds it on
 * long tokens.
 */
const MAX_SPREAD = 0.2;

const ask = (target: Target, line: string, ...lines: readonly string[]): Promise<WireAnswer> =>
  answerTo(target.url, head(`${line} HTTP/1.1`, HOST, 'Connection: close', ...lines));

describe('the operator token', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target.stop());

  attack('O1', 'is refused in the same time for a wrong first character, a wrong last one and a short token', () => {
    const middleware = authenticate([TOKEN], { wrongTries: { note: () => undefined } });
    const wrong: Readonly<Record<string, string>> = {
      first: `X${TOKEN.slice(1)}`,
      last: `${TOKEN.slice(0, -1)}X`,
      short: TOKEN.slice(0, 8),
    };
    const took = new Map(Object.keys(wrong).map((kind) => [kind, [] as number[]]));
    for (let round = 0; round < ROUNDS; round += 1)
      for (const [kind, token] of Object.entries(wrong)) {
        const authorization = `Bearer ${token}`;
        const request = { headers: { authorization }, rawHeaders: ['Authorization', authorization], socket: {} };
        const at = process.hrtime.bigint();
        try {
          middleware(
            request as unknown as Parameters<typeof middleware>[0],
            {} as Parameters<typeof middleware>[1],
            () => assert.fail(),
          );
        } catch (thrown) {
          if (!(thrown instanceof GatewayError)) throw thrown;
        }
        took.get(kind)?.push(Number(process.hrtime.bigint() - at));
      }
    const medians = [...took.values()].map((all) => all.sort((a, b) => a - b)[all.length >> 1] ?? 0);
    const spread = Math.max(...medians) / Math.min(...medians) - 1;
    assert.ok(spread < MAX_SPREAD, `medians ${medians.join(', ')} ns`);
  });

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

  attack('O3', 'is read from its header only: not from a query, a cookie, another header, or twice', async () => {
    const { adminToken } = target;
    for (const route of ROUTES) {
      const ways: readonly (readonly [path: string, lines: readonly string[], status: number])[] = [
        [`${route}?token=${adminToken}&access_token=${adminToken}&authorization=Bearer%20${adminToken}`, [], 401],
        [route, [`Cookie: token=${adminToken}; authorization=${adminToken}`], 401],
        [route, [`X-Authorization: Bearer ${adminToken}`, `X-Api-Key: ${adminToken}`], 401],
        [route, [`Proxy-Authorization: Bearer ${adminToken}`], 401],
        [route, [`Authorization: Bearer ${adminToken}`, 'Authorization: Bearer wrong'], 400],
        [route, ['Authorization: Bearer wrong', `Authorization: Bearer ${adminToken}`], 400],
        [route, [`Authorization: Bearer ${adminToken}`, `Authorization: Bearer ${adminToken}`], 400],
      ];
      for (const [path, lines, status] of ways) {
        const answer = await ask(target, `GET ${path}`, ...lines);
        assert.deepEqual([answer.status, formOf(answer)], [status, 'envelope'], `${path} ${lines.join()}`);
        assert.ok(!answer.body.includes(adminToken));
      }
    }
    const last = 'token-in-a-query';
    await ask(target, `GET /api/events?token=${adminToken}`, `X-Request-Id: ${last}`);
    await target.gateway.logged(({ requestId }) => requestId === last);
    assert.ok(!JSON.stringify(target.gateway.log).includes(adminToken), 'the log has paths without their queries');
  });

  proven(
    'O4',
    'spec/routes/operators.spec.ts',
    '${MAX_FAILED_ATTEMPTS} wrong ones are answered 401, then 429; a right one always passes',
  );
  proven('O2', 'spec/routes/unknown.spec.ts', '${route.path} looks exactly like no route, for every method');
});
