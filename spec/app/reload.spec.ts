import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { openReloader } from '../../src/app/reload.ts';
import type { GatewayConfig } from '../../src/config/document/config.ts';
import { loadDocument } from '../../src/config/load.ts';
import type { ConfigProblem } from '../../src/problems/problem.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { AMOY, changed, SEPOLIA } from '../config/document/document.ts';

const PRICE = { amount: '0.01', currency: 'USDC', units: 10_000n };

it('an entry is taken out of use by a reload, and out of the list by a restart, which the log says', async () => {
  await using ends = new AsyncDisposableStack();
  const path = join(await temporaryDirectory(ends, 'acg-reload-'), 'config.json');
  const write = (x402: readonly object[]): void =>
    writeFileSync(path, JSON.stringify(changed({ 'payments.x402': x402 })));
  write([SEPOLIA, AMOY]);
  const source = { path, env: {} };
  const used: GatewayConfig[] = [];
  const rejected: ConfigProblem[] = [];
  const reloader = openReloader({
    ...{ source, loaded: loadDocument(source), mask: () => undefined, check: () => undefined },
    use: (config) => void used.push(config),
    log: {
      info: () => undefined,
      warn: () => undefined,
      error: (fields: unknown) => rejected.push(...(fields as { problems: readonly ConfigProblem[] }).problems),
    },
    metrics: { counter: () => undefined, gauge: () => undefined },
  });
  ends.defer(() => reloader.close());
  write([SEPOLIA]);
  assert.equal(reloader.reload(), 'rejected');
  assert.deepEqual([rejected.length, rejected[0]?.path], [1, 'payments.x402']);
  assert.match(rejected[0]?.message ?? '', /^needs a restart.*; to remove an entry, set its offered: false/);
  write([SEPOLIA, { ...AMOY, offered: false }]);
  assert.equal(reloader.reload(), 'reloaded');
  assert.deepEqual(
    used.map(({ alternatives, resources }) => [alternatives[0]?.offered, resources[0]?.pricing]),
    [[false, { type: 'fixed', ...PRICE, ended: [{ ...PRICE, entry: 1 }] }]],
  );
});
