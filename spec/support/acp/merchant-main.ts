/**
 * The sample checkout merchant as a process of its own: `node spec/support/acp/merchant-main.ts
 * [port] [--naive]` (default 3100). `--naive`: it looks at no idempotency key. It misbehaves on
 * demand, see `control.ts`.
 */
import { parseArgs } from 'node:util';
import { control } from './control.ts';
import { startCheckoutMerchant } from './merchant.ts';

const DEFAULT_PORT = 3100;

const { values, positionals } = parseArgs({ options: { naive: { type: 'boolean' } }, allowPositionals: true });
const merchant = await startCheckoutMerchant({
  port: Number(positionals[0] ?? DEFAULT_PORT),
  dedupe: values.naive !== true,
  before: control,
});
console.log(`checkout merchant on ${merchant.url}`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void merchant.stop());
