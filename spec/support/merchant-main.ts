/**
 * The sample merchant as a process of its own: `node spec/support/merchant-main.ts [port]` (default
 * 3000).
 */
import { startMerchant } from './merchant.ts';

const DEFAULT_PORT = 3000;

const merchant = await startMerchant({ port: Number(process.argv[2] ?? DEFAULT_PORT) });
console.log(`merchant on ${merchant.url}, for example ${merchant.url}/reports/Berlin`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void merchant.stop());
