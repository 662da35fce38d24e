/**
 * Claims checkout operations from a process of its own. Arguments: engine and where it is (`redis`
 * and a URL, `sqlite` and a path), what (`key`: all the same key; `session`: each a key of its own
 * on one session), a name for both, how often. Waits for a line on stdin, asks all at once, and
 * prints how many were granted.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Store } from '../../src/store/documents/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { checkoutClaim, digestOf } from './checkout-samples.ts';
import { insist } from './insist.ts';

const LIMITS = { eventsMaxLength: 1_000, receiptsMaxLength: 1_000 };
const [engine = '', at = '', what = '', name = '', times = '1'] = process.argv.slice(2);

const store: Store =
  engine === 'redis'
    ? await openRedisStore({ url: at, merchantId: 'shop', limits: LIMITS })
    : openSqliteStore({ path: at, limits: LIMITS });
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const lock = digestOf(`session ${name}`);
const answers = await Promise.all(
  Array.from({ length: Number(times) }, () => {
    const claim = checkoutClaim({ name: digestOf(what === 'key' ? name : randomUUID()), lock });
    return insist(() => store.checkouts.claim(claim));
  }),
);
process.stdout.write(`${answers.filter(({ kind }) => kind === 'granted').length}\n`);
await store.close();
process.exit(0);
