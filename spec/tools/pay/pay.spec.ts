import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { generatePrivateKey } from 'viem/accounts';
import { TEST_BUYER } from '../../../src/payments/pricing/networks.ts';
import { ended } from '../../../tools/local-world/child.ts';
import { keepPayment, keptPayment } from '../../../tools/pay/kept-payment.ts';
import { acgOfCheckout, type CommandRun, TOOLS } from '../../cli/acg.ts';
import { COMPILE_CACHE } from '../../support/compile-cache.ts';
import { ARCHIVE } from '../../support/sample-backend.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';

const CITY = '{"city":"Berlin"}';
const REPORT = '{"city":"Berlin","currency":"EUR","price":"12.50","volume":340}';
const KEPT = join(import.meta.dirname, '../../../tools/pay/kept-payment.ts');
const PRICE_UNITS = 10_000n;

describe('acg pay', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-pay-'));
  let testbed: Testbed;
  let proxy: TcpProxy;
  /** The gateway, and the same through a proxy that loses answers. */
  let url: string;
  let lossy: string;
  before(async () => {
    const overrides = {
      protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
      resources: { market_report: { expose: ['http', 'mcp', 'a2a', 'origin'] } },
    };
    testbed = await openTestbed({ overrides });
    await testbed.chain.mint(TEST_BUYER.address, 100_000_000n);
    url = testbed.gateway.url;
    proxy = await startTcpProxy({ host: '127.0.0.1', port: Number(new URL(url).port) });
    lossy = `http://127.0.0.1:${proxy.port}`;
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await proxy?.stop();
    await testbed?.close();
  });

  const pay = async (
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    input = '',
  ): Promise<CommandRun> => {
    const run = await acgOfCheckout(folder, ['pay', ...args], env, input);
    for (const key of [TEST_BUYER.key, env['ACG_PAY_KEY']?.slice(2)])
      if (key !== undefined) assert.ok(!`${run.output}${run.errors}`.includes(key), 'the key is in the output');
    return run;
  };
  /** What the payee earns meanwhile, base units. */
  const income = async (work: () => Promise<void>): Promise<bigint> => {
    const earlier = await testbed.income();
    await work();
    return (await testbed.income()) - earlier;
  };
  const invoke = (resource: string) => `${url}/api/resources/${resource}/invoke`;

  const WAYS: readonly (readonly [how: string, args: () => readonly string[]])[] = [
    ['at its invoke URL', () => [invoke('market_report'), CITY]],
    ['by its name at the gateway', () => [url, CITY, '--resource', 'market_report']],
    ['in place', () => [`${url}/reports/Berlin`]],
    ['over MCP', () => [url, CITY, '--resource', 'market_report', '--mcp']],
    ['over MCP, by its invoke URL', () => [invoke('market_report'), CITY, '--mcp']],
    ['over A2A', () => [`${url}/a2a`, CITY, '--resource', 'market_report', '--a2a']],
  ];
  for (const [how, args] of WAYS)
    it(`buys ${how}: the merchant's bytes on stdout, terms and transaction on stderr, for exactly the price`, async () => {
      const earned = await income(async () => {
        const { code, output, errors } = await pay([...args(), '--yes', '--max', '0.01']);
        assert.equal(code, 0, errors);
        assert.equal(output.toString(), REPORT);
        const { payTo } = testbed.gateway.config.x402 ?? assert.fail();
        for (const words of [
          'price    0.01 TUSD',
          `to       ${payTo}`,
          'development chain (eip155:31337)',
          TEST_BUYER.address,
        ])
          assert.ok(errors.includes(words), `${words} is not in ${errors}`);
        assert.match(errors, /\npaid 0\.01 TUSD\ntransaction 0x[0-9a-f]{64}\nreceipt \S+\n$/);
      });
      assert.equal(earned, PRICE_UNITS);
    });

  it('gives bytes as they are', async () => {
    const { code, output } = await pay([invoke('archive'), '--yes']);
    assert.equal(code, 0);
    assert.equal(createHash('sha256').update(output).digest('hex'), ARCHIVE.sha256);
  });

  it('takes the body from stdin or a file, and gives one JSON object where it is asked to', async () => {
    writeFileSync(join(folder, 'city.json'), CITY);
    for (const data of ['-', 'city.json']) {
      const { code, output } = await pay([invoke('market_report'), '--data', data, '--yes', '--json'], {}, CITY);
      assert.equal(code, 0);
      const { ok, status, body, payment } = JSON.parse(output.toString());
      assert.deepEqual([ok, status, body], [true, '200', JSON.parse(REPORT)]);
      assert.match(payment.transaction, /^0x[0-9a-f]{64}$/);
      assert.deepEqual([payment.success, payment.amount, payment.network], [true, '10000', 'eip155:31337']);
    }
  });

  it('pays with the key of the environment or of a file, and then with no other', async () => {
    const key = generatePrivateKey();
    writeFileSync(join(folder, 'key'), `${key}\n`);
    for (const [args, env] of [
      [['--key-file', 'key'], {}],
      [[], { ACG_PAY_KEY: key }],
    ] as const) {
      // A fresh key owns nothing: that it is refused shows whose key has signed.
      const { code, output, errors } = await pay([invoke('market_report'), CITY, '--yes', ...args], env);
      assert.deepEqual([code, output.length], [1, 0]);
      assert.match(errors, /\nThe payment proof was refused: insufficient_funds .*Nothing was paid\.\n$/);
    }
  });

  const REFUSALS: readonly (readonly [what: string, args: () => readonly string[], code: number, words: RegExp])[] = [
    [
      'without a terminal and without --yes',
      () => [invoke('market_report'), CITY],
      64,
      /no terminal to ask on: add --yes/,
    ],
    [
      'dearer than --max',
      () => [invoke('market_report'), CITY, '--yes', '--max', '0.009'],
      1,
      /is 0\.01 TUSD, more than --max 0\.009: nothing was paid/,
    ],
    [
      'a --max that is no amount',
      () => [invoke('market_report'), CITY, '--yes', '--max', 'cheap'],
      64,
      /--max must be an amount/,
    ],
    [
      'a resource that there is not',
      () => [url, '--resource', 'none', '--yes'],
      1,
      /not delivered, and nothing was paid: 404 No such resource/,
    ],
    [
      'a tool that there is not',
      () => [url, '--resource', 'none', '--yes', '--mcp'],
      1,
      /not delivered, and nothing was paid: -32602 .*no such tool/,
    ],
    [
      'a skill that there is not',
      () => [url, '--resource', 'none', '--yes', '--a2a'],
      1,
      /not delivered, and nothing was paid: TASK_STATE_FAILED No such resource/,
    ],
    [
      'a server that there is not',
      () => ['http://127.0.0.1:9/', '--yes'],
      69,
      /^http:\/\/127\.0\.0\.1:9\/ does not answer: /,
    ],
    ['no URL', () => ['market_report'], 64, /must begin with http:\/\/ or https:\/\//],
    ['an input that is no JSON', () => [invoke('market_report'), '{city}'], 64, /the input must be JSON, not \{city\}/],
    ['a list over MCP', () => [url, '[]', '--resource', 'x', '--mcp'], 64, /must be a JSON object/],
    ['--mcp without a name', () => [`${url}/mcp`, '--mcp'], 64, /need --resource/],
    ['a body for a GET', () => [`${url}/reports/Berlin`, '{}', '--method', 'GET'], 64, /a GET has no body/],
    [
      'a key file that there is not',
      () => [invoke('market_report'), CITY, '--key-file', 'none'],
      66,
      /^none: there is no such file/m,
    ],
    [
      'a mandate file that there is not',
      () => [invoke('market_report'), CITY, '--mandate', 'none'],
      66,
      /^none: there is no such file/m,
    ],
  ];
  for (const [what, args, expected, words] of REFUSALS)
    it(`${what}: exit ${expected}, one line that says why, and nothing is paid`, async () => {
      const earned = await income(async () => {
        const { code, errors } = await pay(args());
        assert.match(errors, words);
        assert.equal(code, expected);
      });
      assert.equal(earned, 0n);
    });

  it('a key that is none is refused without a look at it in the message', async () => {
    const { code, errors } = await pay([invoke('market_report'), CITY, '--yes'], {
      ACG_PAY_KEY: `0x${'ab'.repeat(31)}`,
    });
    assert.equal(code, 64);
    assert.match(errors, /^ACG_PAY_KEY is no private key: 0x and 64 hexadecimal digits are wanted\n$/);
  });

  it('asks on a terminal, and pays after yes alone', async () => {
    for (const [answer, expected, earns] of [
      ['n', 1, 0n],
      ['y', 0, PRICE_UNITS],
    ] as const) {
      const earned = await income(async () => {
        const command = [process.execPath, TOOLS, 'pay', `${url}/reports/Berlin`].map((word) => `'${word}'`).join(' ');
        const child = spawn('script', ['-qec', command, '/dev/null'], {
          env: { PATH: process.env['PATH'], ...COMPILE_CACHE },
          stdio: ['pipe', 'pipe', 'inherit'],
        });
        let shown = '';
        child.stdout.on('data', (chunk: Buffer) => {
          const before = shown;
          shown += chunk.toString();
          if (!before.includes('Pay? [y/N]') && shown.includes('Pay? [y/N]')) child.stdin.write(`${answer}\n`);
        });
        const { code } = await ended(child);
        child.stdin.end();
        assert.equal(code, expected, shown);
        assert.match(shown, /price {4}0\.01 TUSD/);
      });
      assert.equal(earned, earns);
    }
  });

  it('a lost answer: the same payment again, one purchase, one call of the merchant', async () => {
    const calls = testbed.backend.requests.length;
    const earned = await income(async () => {
      const lost = proxy.loseReply('payment-signature');
      const { code, output, errors } = await pay([`${lossy}/reports/Berlin`, '--yes']);
      await lost;
      assert.equal(code, 0, errors);
      assert.equal(output.toString(), REPORT);
      assert.match(errors, /: the same payment is sent again in 1 s\npaid 0\.01 TUSD\n/);
    });
    assert.equal(earned, PRICE_UNITS);
    assert.equal(testbed.backend.requests.length, calls + 1);
  });

  it('a payment whose answer never came is kept for its owner, and collects later without a second one', async () => {
    const args = [`${lossy}/reports/Berlin`, '--yes', '--proof', 'payment.json'];
    const earned = await income(async () => {
      const lost = proxy.loseReply('payment-signature');
      const first = await pay([...args, '--wait', '0']);
      await lost;
      assert.equal(first.code, 69);
      assert.match(
        first.errors,
        /the same command with --proof payment\.json sends the same payment again, which moves no money twice\nno answer to the payment, which may have moved money: /,
      );
      assert.equal(statSync(join(folder, 'payment.json')).mode & 0o777, 0o600);
      assert.ok(!readFileSync(join(folder, 'payment.json'), 'utf8').includes(TEST_BUYER.key.slice(2)));
      const second = await pay(args);
      assert.equal(second.code, 0, second.errors);
      assert.equal(second.output.toString(), REPORT);
    });
    assert.equal(earned, PRICE_UNITS);
  });

  it('keeps a payment in a whole file or in none, and writes over no other', async () => {
    const file = join(folder, 'whole.json');
    const payment = { proof: 'a proof', idempotencyKey: 'a-key' };
    const keep = `(await import(${JSON.stringify(KEPT)})).keepPayment(${JSON.stringify(file)}, ${JSON.stringify(payment)})`;
    // The system ends the program where it writes the first byte.
    const killed = spawn('sh', ['-c', 'ulimit -f 0; exec "$@"', '-', process.execPath, '-e', keep], {
      stdio: 'ignore',
    });
    assert.notEqual((await ended(killed)).code, 0);
    assert.equal(keptPayment(file), undefined);
    keepPayment(file, payment);
    assert.throws(() => keepPayment(file, { ...payment, idempotencyKey: 'another' }), { code: 'EEXIST' });
    assert.deepEqual(keptPayment(file), payment);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith('whole.json.')),
      [],
    );
  });

  it('a merchant who fails: paid, the answer of the gateway, exit 1, and no file that was not asked for', async () => {
    const files = readdirSync(folder);
    const earned = await income(async () => {
      const { code, output, errors } = await pay([invoke('flaky'), '{"failures":1000}', '--yes', '--wait', '0']);
      assert.equal(code, 1);
      assert.equal(JSON.parse(output.toString()).code, 'BACKEND_ERROR');
      assert.match(errors, /\npaid 0\.001 TUSD\n.*\nnot delivered: 502 The backend answered 500\. [^\n]*\n$/s);
    });
    assert.equal(earned, 1_000n);
    assert.deepEqual(readdirSync(folder), files);
  });

  it('a merchant who fails once is asked again within the time, and paid once', async () => {
    const earned = await income(async () => {
      const { code, output, errors } = await pay([invoke('flaky'), '{"failures":1}', '--yes']);
      assert.equal(code, 0, errors);
      assert.equal(output.toString(), '{"delivered":true}');
    });
    assert.equal(earned, 1_000n);
  });

  it('what is free is given without a payment', async () => {
    const { code, output, errors } = await pay([invoke('cities')]);
    assert.equal(code, 0);
    assert.match(output.toString(), /"cities"/);
    assert.equal(errors, 'nothing was asked for, so nothing was paid\n');
  });
});
