/** The relayer account that this process leases, while it can. */

import { randomUUID } from 'node:crypto';
import { REAL_TIME, type Time } from '../../../time/time.ts';
import type { RelayerLeases } from '../../relayer-leases.ts';

/** How long the store keeps an account for a process that renews no more, milliseconds. */
export const LEASE_MS = 30_000;
/** Milliseconds between two renewals: two may fail before the lease ends. */
export const RENEW_EVERY_MS = 10_000;

export interface OwnRelayerLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

interface OwnRelayerDeps {
  /** Of the relayer, lower case 0x-hex; the first one has the configured key. */
  readonly accounts: readonly string[];
  readonly leases: RelayerLeases;
  readonly log: OwnRelayerLog;
  readonly time?: Time;
}

/** Leases an account and renews it until it is closed. Without one it is tried again each time. */
export function leaseOwnRelayer({ accounts, leases, log, time = REAL_TIME }: OwnRelayerDeps) {
  const owner = randomUUID();
  let leased: { readonly index: number; readonly until: number } | undefined;
  let said: string | undefined;
  let closed = false;

  /** The account that sends now; the first one, which is then shared, while none is leased. */
  const index = (): number => (leased !== undefined && time.now() < leased.until ? leased.index : 0);
  /** What is so again and again is said once. */
  const say = (standing: string, tell: () => void): void => {
    if (said !== standing) tell();
    said = standing;
  };
  const renew = async (): Promise<void> => {
    // The store counts from a later moment, so the lease ends here first.
    const until = time.now() + LEASE_MS;
    let account: string | undefined;
    try {
      account = await leases.lease(owner, accounts, LEASE_MS);
    } catch (err) {
      return say('no answer', () => log.warn({ err }, 'the relayer account could not be leased'));
    }
    leased = account === undefined || closed ? undefined : { index: accounts.indexOf(account), until };
    if (account !== undefined) return say(account, () => log.info({ relayer: account }, 'relayer account leased'));
    const facts = { relayer: accounts[0], relayers: accounts.length };
    say('none free', () =>
      log.warn(
        facts,
        'no relayer account is free, so one is shared: payments.x402.facilitator.relayers must be the number of processes',
      ),
    );
  };
  const renewals = async (): Promise<void> => {
    while (!closed) {
      await renew();
      await time.sleep(RENEW_EVERY_MS);
    }
  };
  void renewals();
  return {
    index,
    /** Gives the account back. Never rejects. */
    async close(): Promise<void> {
      closed = true;
      leased = undefined;
      await leases.release(owner, accounts).catch(() => undefined);
    },
  };
}
