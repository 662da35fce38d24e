import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isOfService, requireService, startHousekeeping } from '../../src/app/store-keeping.ts';
import type { GatewayConfig } from '../../src/config/document/config.ts';
import { ConfigError } from '../../src/problems/problem.ts';
import type { TrimmedReceipts } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import type { Log } from '../../src/telemetry/log/log.ts';
import type { LabelledFact } from '../../src/telemetry/metrics/metrics.ts';

/** Housekeeping with the steps of the test, and what it shows and logs. */
function start(step: () => Promise<boolean>) {
  const store = openSqliteStore({ path: ':memory:', limits: { eventsMaxLength: 10, receiptsMaxLength: 10 } });
  const facts = new Map<string, LabelledFact>();
  const lines: string[] = [];
  let trimmed: TrimmedReceipts = { length: 0, age: 0 };
  const log = (fields: object, message?: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const show = (fact: object) => void facts.set((fact as LabelledFact).name, fact as LabelledFact);
  const trims = (now: TrimmedReceipts): void => {
    trimmed = now;
  };
  const housekeeping = startHousekeeping(
    { tidy: step, receipts: { ...store.receipts, trimmed: () => trimmed } },
    { info: log, warn: log } as never,
    { counter: show, gauge: show },
    1,
  );
  return { housekeeping, facts, lines, store, trims };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}

describe('housekeeping', () => {
  it('takes steps while there is more, counts what was dropped and logs it once', async () => {
    let steps = 0;
    const { housekeeping, facts, lines, store, trims } = start(async () => {
      steps += 1;
      return steps < 3;
    });
    await until(() => steps >= 3);
    trims({ length: 7, age: 2 });
    await until(() => lines.length === 2);
    assert.match(lines[0] ?? '', /more than storage\.receiptsMaxLength \{"dropped":7\}/);
    assert.match(lines[1] ?? '', /receiptsMaxAgeDays are dropped \{"dropped":2\}/);
    assert.deepEqual(await facts.get('acg_receipts_trimmed_total')?.read(), { length: 7, age: 2 });
    assert.deepEqual(await facts.get('acg_receipts')?.read(), { done: 0, owed: 0, uncertain: 0 });
    const before = steps;
    await until(() => steps > before + 2);
    assert.equal(lines.length, 2);
    await housekeeping.stop();
    await store.close();
  });

  it('logs at its end what was not logged yet, and takes no further step', async () => {
    let steps = 0;
    const { housekeeping, lines, store, trims } = start(async () => {
      steps += 1;
      return true;
    });
    await until(() => steps > 0);
    trims({ length: 1, age: 0 });
    await housekeeping.stop();
    const ended = steps;
    assert.equal(lines.filter((line) => line.includes('"dropped":1')).length, 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(steps, ended);
    await store.close();
  });

  it('logs once that the store is away, and continues when it is back', async () => {
    let away = true;
    let steps = 0;
    const { housekeeping, lines, store } = start(async () => {
      steps += 1;
      if (away) throw new Error('away');
      return false;
    });
    await until(() => steps > 3);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /waits for the store/);
    away = false;
    const before = steps;
    await until(() => steps > before + 1);
    await housekeeping.stop();
    assert.equal(lines.length, 1);
    await store.close();
  });
});

/** The store's answer to whose it is; undefined: none comes. */
const OWNERS: readonly (readonly [what: string, own: string, known: string | undefined, Store['name'], end: string])[] =
  [
    ['this service', 'https://shop.example', 'https://shop.example', 'redis', 'opens'],
    ['this service before it moved', 'https://shop.example', 'https://old.example', 'redis', 'opens'],
    ['another service', 'https://shop.example', 'https://other.example', 'sqlite', 'is refused'],
    ['a trial on another port', 'http://127.0.0.1:8402', 'http://localhost:9402', 'sqlite', 'opens'],
    ['another service on this machine', 'http://127.0.0.1:8402', 'http://localhost:9402', 'redis', 'is refused'],
    ['a service that it does not tell', 'https://shop.example', undefined, 'redis', 'opens with a warning'],
  ];

describe('a store', () => {
  for (const [what, publicBaseUrl, known, name, end] of OWNERS)
    it(`on ${name} of ${what} ${end}`, async () => {
      const warnings: unknown[] = [];
      const agree = async () => known ?? Promise.reject(new Error('away'));
      const merchant = { id: 'shop', publicBaseUrl, formerBaseUrls: ['https://old.example'] };
      const required = requireService(
        { name, secrets: { agree } } as unknown as Store,
        merchant as unknown as GatewayConfig['merchant'],
        { warn: (fields: unknown) => void warnings.push(fields) } as unknown as Log,
      );
      if (end !== 'is refused') await required;
      else
        await assert.rejects(
          required,
          (error) =>
            error instanceof ConfigError && /publicBaseUrl: is .*shop in this store is the/.test(error.message),
        );
      assert.equal(warnings.length, end === 'opens with a warning' ? 1 : 0);
    });
});

describe('a purchase of this service', () => {
  for (const [publicBaseUrl, url, expected] of [
    ['https://shop.example', 'https://shop.example/api/resources/a/invoke', true],
    ['https://shop.example', 'https://old.example/api/resources/a/invoke', true],
    ['https://shop.example', 'https://shop.example.net/api/resources/a/invoke', false],
    ['https://shop.example', 'http://127.0.0.1:8402/api/resources/a/invoke', false],
    ['http://127.0.0.1:8402', 'http://localhost:9402/api/resources/a/invoke', true],
  ] as const)
    it(`${expected ? 'may' : 'must not'} name ${url} where the service is ${publicBaseUrl}`, () =>
      assert.equal(isOfService({ publicBaseUrl, formerBaseUrls: ['https://old.example'] }, url), expected));
});
