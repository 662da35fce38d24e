/** The check of this machine's clock, against those of the peers that judge time as well. */

import { CLOCK_TOLERANCE_MS } from '../../payments/x402/chain/chain-health.ts';
import { VALID_AFTER_SKEW_SECONDS } from '../../payments/x402/wire/proof.ts';
import { httpGet } from '../http-get.ts';
import { type Check, type Finding, failed, passed, skipped, warned } from './check.ts';

/** Difference above which a proof is refused whose window begins now, milliseconds. */
const WARN_MS = VALID_AFTER_SKEW_SECONDS * 1_000;
/** Difference above which the gateway takes no payment: blocks contradict its clock. */
const FAIL_MS = CLOCK_TOLERANCE_MS;
/** Most that a clock is later than its Date header, which has whole seconds. */
const DATE_GRAIN_MS = 1_000;
const WAIT_MS = 3_000;
const SET = "set the clock of this machine by a time service, and look at the peer's if only one differs";

/** A clock that was read. */
interface ReadClock {
  readonly whose: string;
  /** Milliseconds that this machine is ahead of the clock; negative: behind. */
  readonly aheadMs: number;
}

interface Clocks {
  /** URLs whose answers have a Date, whatever their status. */
  readonly peers: readonly string[];
  /** The time of the newest block, milliseconds since 1970; absent where blocks have any time. */
  readonly newestBlockMs?: () => Promise<number>;
  /** Milliseconds since 1970; another one in tests. */
  readonly now?: () => number;
}

export function checkClock({ peers, newestBlockMs, now = Date.now }: Clocks): Check {
  return {
    name: 'clock',
    async run() {
      const ofBlocks = newestBlockMs === undefined ? [] : [blockClock(newestBlockMs, now)];
      const clocks = await Promise.all([...peers.map((url) => clockOf(url, now)), ...ofBlocks]);
      const read = clocks.filter((clock) => clock !== undefined);
      if (read.length === 0) return skipped('no peer says what time it is');
      const off = read.filter(({ aheadMs }) => Math.abs(aheadMs) > WARN_MS);
      if (off.length > 0) return off.map(differing);
      return passed(`agrees with ${read.map(({ whose }) => whose).join(', ')}`);
    },
  };
}

/** A block of the future shows a clock that is behind; an old one may be a node that lags. */
async function blockClock(newestBlockMs: () => Promise<number>, now: () => number): Promise<ReadClock | undefined> {
  try {
    const aheadMs = now() - (await newestBlockMs());
    return aheadMs < 0 ? { whose: 'the newest block', aheadMs } : undefined;
  } catch {
    return undefined;
  }
}

function differing({ whose, aheadMs }: ReadClock): Finding {
  const off = `${Math.round(Math.abs(aheadMs) / 1_000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} ${whose}`;
  return Math.abs(aheadMs) > FAIL_MS
    ? failed(`this machine is ${off}: payments are refused above ${FAIL_MS / 1_000} s`, SET)
    : warned(`this machine is ${off}: proofs that begin now are refused above ${WARN_MS / 1_000} s`, SET);
}

/** Undefined where no answer comes, or one without a Date, or one that a cache has kept. */
async function clockOf(url: string, now: () => number): Promise<ReadClock | undefined> {
  const began = now();
  try {
    const response = await httpGet(url, { silentMs: WAIT_MS });
    response.body.destroy();
    const { date, age } = response.headers;
    const theirs = typeof date !== 'string' || age !== undefined ? Number.NaN : Date.parse(date);
    if (Number.isNaN(theirs)) return undefined;
    const ended = now();
    // Their clock read at least `theirs` when we sent, and less than a second more when it came.
    const aheadMs = Math.max(0, began - theirs - DATE_GRAIN_MS) - Math.max(0, theirs - ended);
    return { whose: new URL(url).host, aheadMs };
  } catch {
    return undefined;
  }
}
