/**
 * `make streams`: what streams through the passthrough of a gateway in a process of its own, and
 * whether floods of what passes and of what is sold leave each other alone. Prints one row a goal.
 * `--quick`: smaller transfers and shorter runs. `--only transfers`, `floods` or `websockets`.
 */

import { parseArgs } from 'node:util';

import { askHook } from '../../spec/support/hook.ts';
import { startWorld } from '../../spec/support/world.ts';
import { floodRows } from './flood.ts';
import { startMerchant } from './merchant.ts';
import { type Row, table } from './row.ts';
import { eventsRow, slowBackendRow, slowReaderRow, transferRows, webSocketRows } from './transfers.ts';

const { quick, only } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } },
}).values;
const wanted = (part: string): boolean => only === undefined || only === part;
const GIB = 1_073_741_824;
const sizes = quick ? { bytes: GIB / 8, sockets: 100, seconds: 5 } : { bytes: GIB, sockets: 1_000, seconds: 60 };

const merchant = await startMerchant();
const world = await startWorld({
  overrides: {
    backend: { baseUrl: merchant.url, passthrough: { enabled: true } },
    limits: { maxUpgrades: 1_000 },
    resources: { market_report: { expose: ['http', 'origin'] } },
  },
  env: { LOG_LEVEL: 'warn' },
});
try {
  const { gateway, managementUrl, chain } = world;
  const rows: Row[] = [];
  const report = (...found: readonly Row[]): void => {
    rows.push(...found);
    process.stderr.write(`${table(found)}\n`);
  };
  if (wanted('transfers')) {
    report(...(await transferRows(gateway, sizes.bytes)));
    report(await slowReaderRow(gateway));
    report(await slowBackendRow(gateway, Math.min(sizes.seconds, 40)));
    report(await eventsRow(gateway, sizes.seconds));
  }
  if (wanted('floods')) report(...(await floodRows({ baseUrl: gateway.baseUrl, chain }, Math.min(sizes.seconds, 20))));
  const drain = () => askHook(managementUrl, '/drain');
  if (wanted('websockets')) report(...(await webSocketRows({ ...gateway, drain }, sizes.sockets)));
  process.stdout.write(`${table(rows)}\n`);
  process.exitCode = rows.every(({ met }) => met) ? 0 : 1;
} finally {
  await world.stop();
  await merchant.stop();
}
