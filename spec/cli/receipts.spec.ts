import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Receipt, receiptId } from '../../src/receipts/receipt.ts';
import { PAYMENT, receipt } from '../payments/ledger/samples.ts';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import { answerJson, serveHttp } from '../support/http-server.ts';
import { acgOnTerminal } from './acg.ts';
import { type OperatorBed, openOperatorBed } from './operator-bed.ts';
import { openShell } from './shell.ts';

const MINUTE_MS = 60_000;
/** The tests run some time after this. */
const BEGAN_MS = Date.now();
/** More than a page of the API. */
const MANY = 620;

function aged(minutes: number, name: string, more: Partial<Receipt> = {}): Receipt {
  return receipt(receiptId(BEGAN_MS - minutes * MINUTE_MS), name, more);
}

const UNDELIVERED = aged(2, 'undelivered', {
  payment: PAYMENT,
  metadata: { backendErrorCode: 'BACKEND_TIMEOUT', callId: 'call_019b0000-0000-7000-8000-000000000001' },
});
const DUE = aged(3, 'due', {
  payment: { ...PAYMENT, amount: '12.5', replayKey: 'b'.repeat(64) },
  metadata: { refundDue: true },
});
const UNKNOWN = aged(4, 'unknown', { payment: { ...PAYMENT, status: 'unknown', replayKey: 'c'.repeat(64) } });
const HOSTILE = aged(5, 'hostile', { resourceId: 'rare', delivered: true, metadata: { operation: '\u001b[2J' } });
const OLD = Array.from({ length: MANY }, (_, index) => aged(120 + index, `old-${index}`, { delivered: true }));

const ends = new AsyncDisposableStack();
const shell = openShell(ends);
let bed: OperatorBed;
before(async () => {
  bed = await openOperatorBed(ends);
  await bed.gateway.store.receipts.write([UNDELIVERED, DUE, UNKNOWN, HOSTILE, ...OLD]);
});
after(() => ends.disposeAsync());

const run = (...args: readonly string[]) => shell.run(bed.folder, ['receipts', ...args]);
const onTerminal = (...args: readonly string[]) => shell.run(bed.folder, ['receipts', ...args], { isTerminal: true });
const shown = async (...args: readonly string[]) => {
  const { code, lines, errors } = await run(...args);
  assert.equal(code, 0, errors);
  const { receipts, nextCursor } = JSON.parse(lines.join('\n'));
  return { ids: receipts.map(({ id }: Receipt) => id), receipts, nextCursor, errors };
};
const idsOf = (receipts: readonly Receipt[]) => receipts.map(({ id }) => id);

describe('acg receipts', () => {
  it('prints the document of the API, newest first, and says that there is more', async () => {
    const { ids, receipts, nextCursor, errors } = await shown('--limit', '5');
    assert.deepEqual(ids, idsOf([UNDELIVERED, DUE, UNKNOWN, HOSTILE, ...OLD.slice(0, 1)]));
    assert.deepEqual(receipts[0], UNDELIVERED);
    assert.equal(nextCursor, OLD[0]?.id);
    assert.equal(errors, '5 receipts, and there are older ones: --limit 10 shows more\n');
  });

  it('follows the cursors up to the limit, and to the end', async () => {
    const { ids, nextCursor, errors } = await shown('--limit', '1000');
    assert.deepEqual(ids, idsOf([UNDELIVERED, DUE, UNKNOWN, HOSTILE, ...OLD]));
    assert.deepEqual([nextCursor, errors], [undefined, '']);
    assert.equal((await shown('--limit', '501')).ids.length, 501);
  });

  it('has the filters of the API, and a bound of age', async () => {
    const cases: readonly (readonly [args: readonly string[], receipts: readonly Receipt[]])[] = [
      [['--undelivered'], [UNDELIVERED, DUE, UNKNOWN]],
      [['--uncertain', 'payment'], [UNKNOWN]],
      [['--uncertain', 'delivery'], []],
      [['--resource', 'rare'], [HOSTILE]],
      [['--request-id', 'due'], [DUE]],
      [['--call-id', UNDELIVERED.metadata?.callId ?? ''], [UNDELIVERED]],
      [
        ['--since', '1h'],
        [UNDELIVERED, DUE, UNKNOWN, HOSTILE],
      ],
      [
        ['--since', new Date(BEGAN_MS - 3.5 * MINUTE_MS).toISOString()],
        [UNDELIVERED, DUE],
      ],
    ];
    await Promise.all(
      cases.map(async ([args, receipts]) => {
        const { ids, nextCursor } = await shown(...args);
        assert.deepEqual([ids, nextCursor], [idsOf(receipts), undefined], args.join(' '));
      }),
    );
  });

  it('is a table on a terminal, with what became of each', async () => {
    const { lines } = await onTerminal('--limit', '4');
    assert.deepEqual(
      lines.map((line) => line.replaceAll(/ {2,}/g, '|').replace(/receipt_.*/, 'ID')),
      [
        'AT|RESOURCE|AMOUNT|STATE|RECEIPT',
        `${UNDELIVERED.at}|market_report|0.01 USDC|undelivered|ID`,
        `${DUE.at}|market_report|12.5 USDC|refund due|ID`,
        `${UNKNOWN.at}|market_report|0.01 USDC|payment unknown|ID`,
        `${HOSTILE.at}|rare|delivered|ID`,
      ],
    );
    const coloured = await acgOnTerminal(bed.folder, ['receipts', '--limit', '1']);
    assert.ok(coloured.lines[1]?.includes('\u001b[33mundelivered\u001b[39m'));
    const none = await onTerminal('--request-id', 'nothing');
    assert.deepEqual(none.lines, ['no receipts']);
  });

  it('is CSV with a column for each fact', async () => {
    const { lines } = await run('--csv', '--request-id', 'due');
    const [titles = '', row = '', ...more] = lines.map((line) => line.replace('\r', ''));
    assert.equal(more.length, 0);
    const facts = Object.fromEntries(titles.split(',').map((title, index) => [title, row.split(',')[index]]));
    const { id, amount, currency, payer, transaction, state } = facts;
    assert.deepEqual(
      { id, amount, currency, payer, transaction, state },
      {
        id: DUE.id,
        amount: '12.5',
        currency: 'USDC',
        payer: PAYMENT.payer,
        transaction: PAYMENT.externalReference,
        state: 'refund due',
      },
    );
  });

  it('shows one in full, in each format', async () => {
    for (const wanted of [UNDELIVERED, OLD.at(-1) ?? UNDELIVERED]) {
      const { lines } = await run(wanted.id);
      assert.deepEqual(JSON.parse(lines.join('\n')), wanted);
    }
    const { lines } = await onTerminal(HOSTILE.id);
    assert.ok(lines.some((line) => /^metadata\.operation +\\u\{1b\}\[2J$/.test(line)));
    assert.equal((await run(DUE.id, '--csv')).lines.length, 2);
    const missing = await run(receiptId());
    assert.deepEqual([missing.code, missing.lines], [1, []]);
    assert.match(missing.errors, /^no receipt receipt_[0-9a-f-]+\n$/);
    const wrong = await run('receipt_1');
    assert.deepEqual([wrong.code, wrong.errors.split('\n').length], [64, 2]);
  });
});

describe('the way to a running gateway', () => {
  const token = { ACG_ADMIN_TOKEN: OPERATOR_TOKEN };
  const elsewhere = (env: Readonly<Record<string, string>>, ...args: readonly string[]) =>
    shell.run(bed.folder, ['receipts', '--url', bed.gateway.url, '--limit', '1', ...args], { env });

  it('is --url with a token from the environment or a file', async () => {
    const file = join(bed.folder, 'token');
    await writeFile(file, `${OPERATOR_TOKEN}\n`);
    for (const run of [
      elsewhere(token),
      elsewhere({ ADMIN_TOKEN: OPERATOR_TOKEN }),
      elsewhere({ ...token, ADMIN_TOKEN: 'another' }),
      elsewhere({ ACG_ADMIN_TOKEN: 'another' }, '--token-file', file),
    ])
      assert.equal((await run).code, 0);
  });

  it('never sends the token of the configuration to another gateway', async () => {
    const { code, errors } = await elsewhere({});
    assert.deepEqual(
      [code, errors],
      [64, '--url needs the operator token: set ACG_ADMIN_TOKEN, or give --token-file\n'],
    );
  });

  it('a wrong token is named by where it comes from, never shown', async () => {
    const { url } = bed.gateway;
    const { code, errors } = await elsewhere({ ACG_ADMIN_TOKEN: 'wrong-secret' });
    assert.deepEqual([code, errors], [1, `${url} refuses the operator token of ACG_ADMIN_TOKEN\n`]);
    const garbled = await elsewhere({ ADMIN_TOKEN: 'wrong\u00e9secret' });
    assert.deepEqual(
      [garbled.code, garbled.errors],
      [64, 'ADMIN_TOKEN holds no operator token: one line of at most 512 visible ASCII characters\n'],
    );
  });

  it('goes to a host that the gateway serves', async () => {
    await using own = new AsyncDisposableStack();
    const { folder } = await openOperatorBed(own, { server: { allowedHosts: ['shop.example'] } });
    assert.equal((await shell.run(folder, ['receipts'])).code, 0);
  });

  it('one line and exit code 69 where something else answers', async () => {
    await using own = new AsyncDisposableStack();
    const stranger = own.adopt(
      await serveHttp(({ response }) => answerJson(response, 418, { error: '\u001b[2J' })),
      ({ stop }) => stop(),
    );
    const { code, errors } = await shell.run(bed.folder, ['receipts', '--url', stranger.url], { env: token });
    assert.deepEqual([code, errors], [69, `${stranger.url} answers 418 and is no gateway\n`]);
    const circle = own.adopt(
      await serveHttp(({ response }) => answerJson(response, 200, { receipts: [], nextCursor: 'same' })),
      ({ stop }) => stop(),
    );
    const endless = await shell.run(bed.folder, ['receipts', '--url', circle.url], { env: token });
    assert.deepEqual([endless.code, endless.errors], [69, '/api/receipts leads back to where it was\n']);
  });

  it('without an operator token the gateway has no such routes', async () => {
    await using own = new AsyncDisposableStack();
    const { gateway, folder } = await openOperatorBed(own);
    gateway.reload({ server: { adminToken: undefined } });
    const { code, errors } = await shell.run(folder, ['receipts']);
    assert.deepEqual(
      [code, errors],
      [1, `${gateway.url} has no routes for operators: it runs without server.adminToken\n`],
    );
  });
});
