// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, mock } from 'node:test';
import { parse, stringify } from 'yaml';
import { COMPILE_CACHE } from '../../../spec/support/compile-cache.ts';
import { startHostileFacilitator } from '../../../spec/support/hostile-facilitator.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { GatewayError } from '../../../src/errors.ts';
import { authenticate } from '../../../src/operator/api/routes.ts';
import { ConfigError } from '../../../src/problems/problem.ts';
import { attack, proven } from '../catalogue.ts';
import { formOf, openTarget, type ProofMaker, proofMaker, type Target } from '../target.ts';
import { answerTo, ENTRANCES, HOST, head, JSON_TYPE, type WireAnswer } from '../wire/conversation.ts';

const TOKEN = 'operator-token-0123456789abcdefghijklmnopqrstuvwxyz';
const ROUTES = ['/api/events', '/api/receipts', '/api/events/stream'];

const ask = (target: Target, line: string, ...lines: readonly string[]): Promise<WireAnswer> =>
  answerTo(target.url, head(`${line} HTTP/1.1`, HOST, 'Connection: close', ...lines));

describe('the operator token', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target.stop());

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

  proven('O6', 'spec/operator/api/stream-route.spec.ts', 'Last-Event-ID ${name} is refused');
  proven(
    'O6',
    'spec/operator/api/stream-route.spec.ts',
    'leave one to others; the next reader gets Retry-After 5 s, and a slot that was left is free again',
  );
  proven(
    'O6',
    'spec/e2e/stream-memory.spec.ts',
    'costs the process less than 8 MB while 100,000 events pass, and the others see every one',
  );
  proven(
    'O6',
    'spec/operator/api/stream-pace.spec.ts',
    'of live events is cut with more than 1 MiB unsent and counted; the others get every event',
  );
  proven(
    'O4',
    'spec/routes/operators.spec.ts',
    '${MAX_FAILED_ATTEMPTS} wrong ones are answered 401, then 429; a right one always passes',
  );
  proven('O2', 'spec/routes/unknown.spec.ts', '${route.path} looks exactly like no route, for every method');
});

describe('routes that agents must not reach', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target?.stop());

  proven('O11', 'spec/routes/management.spec.ts', 'shares no route with agents but the probes');
  proven('O11', 'spec/routes/management.spec.ts', 'has no route for agents or operators');
  proven(
    'O11',
    'spec/routes/unknown.spec.ts',
    '${path} of the app for ${app} is 404 for every method, with a body, and with a token',
  );

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

const MAIN = new URL('../../../src/main.ts', import.meta.url).pathname;
const PLANTED = 'planted-operator-token-7d0c2b';
/** Texts that reveal internals: stacks, paths, own addresses, messages of libraries. */
const INSIDES =
  /\n\s+at |node:|node_modules|\.ts\b|\.js:\d|file:\/\/|\/(?:home|root|tmp|usr|work|app|src)\/|https?:\/\/127\.0\.0\.1:(?!PUBLIC)|ECONN|ENOTFOUND|EACCES|undici|anvil|viem|sqlite|redis:\/\/|planted/i;

describe('secrets of the configuration', () => {
  let directory: string;
  let target: Target;
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'acg-secrets-'));
    const file = join(directory, 'admin-token');
    writeFileSync(file, `${PLANTED}\n`);
    chmodSync(file, 0o600);
    target = await openTarget({ server: { adminToken: `\${file:${file}}` } });
  });
  after(async () => {
    await target?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const validate = (configPath: string): string => {
    const args = [MAIN, 'validate', '--config', configPath];
    const { stdout, stderr, status } = spawnSync(process.execPath, args, {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], ...COMPILE_CACHE },
    });
    return `${status} ${stdout} ${stderr}`;
  };

  /** The text that refuses a configuration. */
  const refusalOf = (path: string): string => {
    try {
      loadConfig({ path, env: {} });
    } catch (thrown) {
      if (thrown instanceof ConfigError) return thrown.message;
      throw thrown;
    }
    throw new Error(`${path} is accepted`);
  };

  attack('O8', 'a token in a mounted file opens the routes, and is in no command line and no log', async () => {
    const events = await fetch(`${target.url}/api/events`, { headers: { authorization: `Bearer ${PLANTED}` } });
    assert.equal(events.status, 200);
    const commandLine = readFileSync(`/proc/${target.gateway.pid}/cmdline`, 'utf8');
    assert.ok(commandLine.includes('serve') && !commandLine.includes(PLANTED));
    assert.ok(!target.gateway.output().includes(PLANTED));
  });

  attack('O8', 'validate prints no secret, for a right and for a wrong configuration', () => {
    assert.match(validate(target.configPath), /^0 valid/);
    const right = parse(readFileSync(target.configPath, 'utf8')) as Readonly<Record<string, object>>;
    const spoilt = { ...right, server: { ...right['server'], adminToken: [PLANTED], unknown: PLANTED } };
    const path = join(directory, 'spoilt.yaml');
    writeFileSync(path, stringify(spoilt, { aliasDuplicateObjects: false }));
    const printed = validate(path);
    assert.match(printed, /^78 /);
    assert.ok(printed.includes(refusalOf(path)), 'only the refusal is printed and nothing else of the file');
    assert.ok(!printed.includes(PLANTED));
  });

  for (const title of ['shows no secret: ${title}', 'shows no part of a secret where a character is wrong: ${title}'])
    proven('O8', 'spec/config/secrecy.spec.ts', title);
  proven('O8', 'spec/config/secrecy.spec.ts', 'shows nothing of ${title}');
});

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
