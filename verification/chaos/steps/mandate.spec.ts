import { after, before, describe, it } from 'node:test';
import { rowsOf } from '../every.ts';
import { type Ground, startGround } from './ground.ts';
import { dieUnderMandate, type MandateDeath } from './mandate-deaths.ts';

/** Fails a test whose gateway does not die, milliseconds. */
const TIMEOUT_MS = 120_000;

const EMBEDDED = { store: 'sqlite', rail: 'local' } as const;
const SHARED = { store: 'redis', rail: 'official' } as const;
/**
 * A mandate follows its payment: faults matter around the writes that reserve, settle and deliver
 * it.
 */
const DEATHS = rowsOf<MandateDeath & { readonly rare?: true }>([
  { where: EMBEDDED, step: 'reserved', left: 'held', buyer: 'away' },
  { where: EMBEDDED, step: 'settling', left: 'held', buyer: 'cancels' },
  { where: EMBEDDED, step: 'signed', left: 'held', rare: true },
  { where: EMBEDDED, step: 'settled', left: 'spent' },
  { where: EMBEDDED, step: 'relayed', left: 'spent', rare: true },
  { where: SHARED, step: 'reserved', left: 'held', rare: true },
  { where: SHARED, step: 'sending', left: 'held' },
  { where: SHARED, step: 'answered', left: 'held', rare: true },
  { where: SHARED, step: 'settled', left: 'spent' },
  { where: SHARED, step: 'delivered', left: 'spent', key: 'key-of-the-buyer' },
]);
/** Deaths at the same time: more of them would only start their processes more slowly. */
const AT_ONCE = 5;
const THEN = { away: ', while its buyer stays away', cancels: ', and whose buyer takes the payment back' } as const;

describe('a gateway that dies during a purchase under a mandate', { concurrency: AT_ONCE }, () => {
  let ground: Ground;
  before(async () => {
    ground = await startGround();
  });
  after(() => ground.stop());

  for (const death of DEATHS) {
    const { where, step, buyer } = death;
    const then = buyer === undefined ? '' : THEN[buyer];
    it(
      `at "${step}" on ${where.store}${then}: the mandate has bought once and buys nothing more`,
      { timeout: TIMEOUT_MS },
      () => dieUnderMandate(ground, death),
    );
  }
});
