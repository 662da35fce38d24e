/**
 * Claims mandates from a process of its own. Arguments: engine and where it is (`redis` and a URL,
 * `sqlite` and a path), how (`paid` or `free`), what (`budget`: each a mandate of its own under one
 * open mandate; `mandate`: all the same), a name for both, how often. Waits for a line on stdin,
 * asks all at once, and prints how many were accepted.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { MandateClaim } from '../../src/mandates/register/register.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { claimOf, mandateText, useOf } from '../mandates/register/register-map.ts';
import { terms } from '../payments/ledger/samples.ts';
import { insist } from './insist.ts';

const LIMITS = { eventsMaxLength: 1_000, receiptsMaxLength: 1_000 };
const LEASE_MS = 60_000;
const [engine = '', at = '', how = '', what = '', name = '', times = '1'] = process.argv.slice(2);

const store: Store =
  engine === 'redis'
    ? await openRedisStore({ url: at, merchantId: 'shop', limits: LIMITS })
    : openSqliteStore({ path: at, limits: LIMITS });
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const claims = Array.from({ length: Number(times) }, () =>
  what === 'mandate' ? claimOf(name) : claimOf(undefined, { open: [useOf(name, { units: '1', budgetUnits: '100' })] }),
);
const accepted = await Promise.all(claims.map(how === 'paid' ? pay : call));
process.stdout.write(`${accepted.filter(Boolean).length}\n`);
await store.close();
process.exit(0);

async function pay(claim: MandateClaim): Promise<boolean> {
  const offered = terms(randomUUID(), { mandate: mandateText(claim) });
  const command = { terms: offered, owner: randomUUID(), leaseMs: LEASE_MS };
  const answer = await insist(() => store.ledger.reserve(command));
  return answer.kind === 'granted';
}

async function call(claim: MandateClaim): Promise<boolean> {
  const attempt = randomUUID();
  return (await insist(() => store.mandates.reserve(attempt, claim))).kind === 'reserved';
}
