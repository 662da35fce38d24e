import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Claim, Claimed, Hold, Owning, Unknown } from '../../src/checkouts/claim-table.ts';
import { MAX_DOCUMENT_BYTES } from '../../src/checkouts/operations.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { clockOf, clockPast, type OpenStore, opened } from './opened.ts';

/** Longer than any test lasts, milliseconds. */
const LONG_MS = 600_000;
/** Over at the next look at the clock, milliseconds. */
const BRIEF_MS = 1;

/** 43 characters, as names, locks and fingerprints have. */
function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** A claim of a key and a session of its own, with `changes`. */
export function checkoutClaim(changes: Partial<Claim> = {}): Claim {
  return {
    name: digestOf(randomUUID()),
    lock: digestOf(randomUUID()),
    fingerprint: digestOf('body'),
    owner: randomUUID(),
    leaseMs: LONG_MS,
    keepMs: LONG_MS,
    ...changes,
  };
}

/** The same key and session, asked for by a new attempt. */
export function nextOf(claim: Claim, changes: Partial<Claim> = {}): Claim {
  return { ...claim, owner: randomUUID(), ...changes };
}

/** What ends an attempt that was granted. */
export function holdOf({ name, lock, fingerprint, owner }: Claim, fence = 1): Hold {
  return { name, lock, fingerprint, owner, fence };
}

/** A first attempt that is granted, and a later one whose earlier attempt has an unknown end. */
const FIRST: Claimed = { kind: 'granted', fence: 1 };
function grantedAfter(why: Unknown, fence: number, otherKey = false): object {
  return { kind: 'granted', fence, earlier: { why, otherKey } };
}

/** An answer without its times. */
function timeless(claimed: Claimed): object {
  return JSON.parse(
    JSON.stringify(claimed, (name, value) => (/^(?:age|leaseLeft|since)Ms$/.test(name) ? undefined : value)),
  );
}

const ANSWER = { status: 200, sealed: 'k1.sealed_-', keepMs: LONG_MS };
const TIMEOUT = { why: 'timeout', keepMs: LONG_MS } as const;
/** Longest that a store may take to answer here, milliseconds. */
const SLOW_MS = 60_000;

const SESSION = digestOf(randomUUID());
/** The claim of a client on a session; of one session for all unless given. */
const owningOf = (client: string, session = SESSION): Owning => {
  return { session, owner: digestOf(`${client} ${session}`), keepMs: LONG_MS };
};

/** What is remembered of checkout operations. */
export function checkoutContract(name: string, open: OpenStore): void {
  describe(`${name}: checkout operations`, () => {
    const { store } = opened(open);
    const claimed = (claim: Claim) => store().checkouts.claim(claim);
    const asked = async (claim: Claim) => timeless(await claimed(claim));
    const granted = async (changes: Partial<Claim> = {}): Promise<Claim> => {
      const claim = checkoutClaim(changes);
      assert.deepEqual(await claimed(claim), FIRST);
      return claim;
    };
    const later = async () => clockPast(store, (await clockOf(store())) + BRIEF_MS);

    it('answer with their end to every claim of the same body', async () => {
      const { finish } = store().checkouts;
      for (const sealed of ['', 'k1.sealed_-', 'x'.repeat(2 * MAX_DOCUMENT_BYTES)]) {
        const claim = await granted();
        const answer = { status: 201, sealed, keepMs: LONG_MS };
        for (const _ of ['once', 'twice']) assert.equal(await finish(holdOf(claim), answer), true);
        for (const next of [claim, nextOf(claim), nextOf(claim, { lock: undefined })])
          assert.deepEqual(await claimed(next), { kind: 'completed', status: 201, sealed });
      }
    });

    it('run once: other claims get the age of the attempt and the rest of its lease', async () => {
      const claim = await granted();
      const reply = await claimed(nextOf(claim));
      assert.ok(reply.kind === 'in_flight');
      assert.ok(reply.ageMs >= 0 && reply.ageMs < SLOW_MS, `${reply.ageMs} ms`);
      assert.ok(reply.leaseLeftMs > LONG_MS - SLOW_MS && reply.leaseLeftMs <= LONG_MS, `${reply.leaseLeftMs} ms`);
      assert.deepEqual(await claimed(claim), FIRST);
    });

    it('are granted to one of fifty claims at once', async () => {
      const claim = checkoutClaim();
      const answers = await Promise.all(Array.from({ length: 50 }, () => asked(nextOf(claim))));
      const kinds = answers.map((answer) => JSON.stringify(answer)).sort();
      assert.deepEqual(kinds, [JSON.stringify(FIRST), ...Array(49).fill(JSON.stringify({ kind: 'in_flight' }))]);
    });

    it('run again when a lease ended, with the age of the attempt', async () => {
      const claim = await granted({ leaseMs: BRIEF_MS });
      await later();
      const reply = await claimed(nextOf(claim, { leaseMs: LONG_MS }));
      assert.deepEqual(timeless(reply), grantedAfter('lease_expired', 2));
      const { sinceMs } = (reply.kind === 'granted' ? reply.earlier : undefined) ?? assert.fail();
      assert.ok(sinceMs > BRIEF_MS && sinceMs < SLOW_MS);
      assert.deepEqual(await asked(nextOf(claim)), { kind: 'in_flight' });
    });

    it('exclude one another on a session, whatever their keys, until the end is known', async () => {
      const { finish, unknown, release } = store().checkouts;
      const one = await granted();
      const other = () => checkoutClaim({ lock: one.lock });
      const busy = await claimed(other());
      assert.ok(busy.kind === 'session_busy' && busy.leaseLeftMs > LONG_MS - SLOW_MS && busy.ageMs < SLOW_MS);
      assert.deepEqual(await claimed(checkoutClaim({ lock: undefined })), FIRST);
      await finish(holdOf(one), ANSWER);
      const two = other();
      assert.deepEqual(await claimed(two), FIRST);
      await unknown(holdOf(two), TIMEOUT);
      const three = other();
      for (const _ of ['once', 'twice']) assert.deepEqual(await asked(three), grantedAfter('timeout', 1, true));
      assert.deepEqual(await asked(nextOf(two)), { kind: 'session_busy' });
      await release(holdOf(three));
      assert.deepEqual(
        await asked(other()),
        grantedAfter('timeout', 1, true),
        'a release keeps nothing of the attempt before',
      );
    });

    it('are forgotten when their time is over, in every state, with the session', async () => {
      const { finish, unknown } = store().checkouts;
      const keepMs = BRIEF_MS;
      const [running, open, done] = [await granted({ leaseMs: BRIEF_MS, keepMs }), await granted(), await granted()];
      await unknown(holdOf(open), { ...TIMEOUT, keepMs });
      await finish(holdOf(done), { ...ANSWER, keepMs });
      await later();
      await later();
      for (const over of [running, open, done]) {
        assert.deepEqual(await claimed(checkoutClaim({ lock: over.lock })), FIRST);
        assert.deepEqual(await claimed(nextOf(over, { lock: undefined, fingerprint: digestOf('new') })), FIRST);
      }
    });

    it('a session is its first owner’s as long as it is remembered', async () => {
      const { own, ownership } = store().checkouts;
      const [mine, theirs] = [owningOf('mine'), owningOf('theirs')];
      assert.equal(await ownership(mine), 'none');
      assert.equal(await ownership(theirs), 'none');
      for (const _ of ['once', 'twice']) assert.equal(await own(mine), true);
      assert.equal(await own(theirs), false);
      assert.equal(await ownership(mine), 'own');
      assert.equal(await ownership(theirs), 'other');
      assert.equal(await ownership(owningOf('mine', digestOf(randomUUID()))), 'none');
    });

    it('one of fifty clients that open a session at once owns it', async () => {
      const session = digestOf(randomUUID());
      const given = await Promise.all(
        Array.from({ length: 50 }, (_, nth) => store().checkouts.own(owningOf(`client ${nth}`, session))),
      );
      assert.deepEqual(given.filter(Boolean), [true]);
    });

    it('a session is forgotten after its time, and not before: only its owner’s calls prolong it', async () => {
      const { own, ownership } = store().checkouts;
      const [used, left] = [digestOf(randomUUID()), digestOf(randomUUID())];
      for (const session of [used, left]) await own({ ...owningOf('mine', session), keepMs: BRIEF_MS });
      await ownership(owningOf('mine', used));
      await ownership(owningOf('theirs', left));
      await later();
      assert.equal(await ownership(owningOf('mine', left)), 'none');
      assert.equal(await own(owningOf('theirs', left)), true);
      const kept = { ...owningOf('mine'), keepMs: LONG_MS };
      await own({ ...kept, keepMs: LONG_MS });
      // A shorter time takes nothing away.
      await own({ ...kept, keepMs: BRIEF_MS });
      await later();
      assert.equal(await ownership({ ...kept, keepMs: BRIEF_MS }), 'own');
    });

    it('are not seen by another merchant', async () => {
      const claim = await granted();
      const other = await open(randomUUID());
      assert.deepEqual(await other.checkouts.claim(nextOf(claim)), FIRST);
      const owning = owningOf('mine');
      await store().checkouts.own(owning);
      assert.equal(await other.checkouts.ownership(owning), 'none');
      await other.close();
      assert.deepEqual(await claimed(claim), FIRST);
    });

    it('refuse odd names, owners, fencing tokens, answers and times as a bug of the caller', async () => {
      const { claim, finish, unknown, release, own, ownership } = store().checkouts;
      const sound = await granted();
      for (const odd of [{ session: '' }, { owner: 'short' }, { keepMs: 0 }, { keepMs: 367 * 86_400_000 }])
        for (const ask of [own, ownership])
          await assert.rejects(ask({ ...owningOf('mine'), ...odd }), RangeError, JSON.stringify(odd));
      for (const odd of [
        ...['', 'short', `${sound.name}\n`, 'é'.repeat(43)].flatMap((name) => [{ name }, { lock: name }]),
        ...[{ fingerprint: '' }, { owner: '' }, { owner: 'o'.repeat(65) }, { unopened: 'a b' }],
        ...[0, -1, 0.5, Number.NaN, 367 * 86_400_000].flatMap((ms) => [{ leaseMs: ms }, { keepMs: ms }]),
      ])
        await assert.rejects(claim({ ...sound, ...odd }), RangeError, JSON.stringify(odd));
      for (const odd of [{ status: 99 }, { status: 600 }, { keepMs: 0 }, { sealed: 'é' }, { sealed: 'a\n' }])
        await assert.rejects(finish(holdOf(sound), { ...ANSWER, ...odd }), RangeError, JSON.stringify(odd));
      const tooLong = { ...ANSWER, sealed: 'x'.repeat(2 * MAX_DOCUMENT_BYTES + 1) };
      await assert.rejects(finish(holdOf(sound), tooLong), RangeError);
      await assert.rejects(unknown(holdOf(sound), { ...TIMEOUT, keepMs: 0 }), RangeError);
      await assert.rejects(release({ ...holdOf(sound), fingerprint: '' }), RangeError);
      for (const fence of [0, 0.5]) await assert.rejects(release(holdOf(sound, fence)), RangeError);
      assert.deepEqual(await claimed(sound), FIRST);
    });

    it('are refused with a StoreError while the store is away', async () => {
      const shut = await open(randomUUID());
      await shut.close();
      const { claim, finish, unknown, release, own, ownership } = shut.checkouts;
      await assert.rejects(own(owningOf('mine')), StoreError);
      await assert.rejects(ownership(owningOf('mine')), StoreError);
      const sound = checkoutClaim();
      await assert.rejects(claim(sound), StoreError);
      await assert.rejects(finish(holdOf(sound), ANSWER), StoreError);
      await assert.rejects(unknown(holdOf(sound), TIMEOUT), StoreError);
      await assert.rejects(release(holdOf(sound)), StoreError);
    });
  });
}
