/**
 * What is found in checkpoints that the right key signed, and in a book that changes while it is
 * read.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Checkpoint, headOf, readCheckpoint, signCheckpoint } from '../../../src/receipts/log/checkpoint.ts';
import { digestOf } from '../../../src/receipts/log/series.ts';
import { type Receipt, receiptId } from '../../../src/receipts/receipt.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { receipt } from '../../payments/ledger/samples.ts';
import { temporaryDirectory } from '../../store/temporary.ts';
import { before, KEY, type LogBed, logOf, seal, sqliteBed, verified } from './log-bed.ts';

const directory = temporaryDirectory();
const LIMITS = { eventsMaxLength: 100, receiptsMaxLength: 1 };

async function inBed(then: (bed: LogBed, store: Store) => Promise<void>): Promise<void> {
  const bed = sqliteBed(directory);
  try {
    await then(bed, await bed.open(undefined, LIMITS));
  } finally {
    await bed.close();
  }
}

const owed = (more: Partial<Receipt> = {}): Receipt => receipt(receiptId(), 'request', more);

async function whats(store: Store, more?: Parameters<typeof verified>[1]): Promise<readonly string[]> {
  return (await verified(store, more)).findings.map(({ what }) => what);
}

/** Writes and seals a version of one receipt, `times` times. */
async function grow(store: Store, one: Receipt, times: number, maxVersions = 10_000): Promise<void> {
  for (let at = 0; at < times; at += 1) {
    await store.receipts.write([{ ...one, durationMs: at }]);
    await seal(store, { maxVersions });
  }
}

describe('checkpoints that a key of the gateway signed', () => {
  /** What is found in two checkpoints of one series, once the second says something else. */
  const found = async (
    change: (second: Checkpoint, first: Checkpoint, versions: string) => Partial<Checkpoint>,
    versionsOf = (versions: string) => versions,
  ): Promise<readonly string[]> => {
    const found: string[] = [];
    await inBed(async (bed, store) => {
      await grow(store, owed(), 2);
      assert.deepEqual(await whats(store), []);
      const contents = await bed.read();
      const [one, two] = [contents.sealed.get(1), contents.sealed.get(2)];
      const [first, second] = [readCheckpoint(one?.checkpoint ?? ''), readCheckpoint(two?.checkpoint ?? '')];
      assert.ok(first && second && two);
      const versions = versionsOf(two.versions);
      const checkpoint = signCheckpoint({ ...second, ...change(second, first, versions) }, KEY);
      await bed.put({ ...contents, sealed: new Map(contents.sealed).set(2, { checkpoint, versions }) });
      found.push(...(await whats(store)));
    });
    return found;
  };

  it('are of this merchant', async () => {
    assert.deepEqual(await found(() => ({ merchant: 'other' })), ['is one of other']);
  });

  it('stand in their place', async () => {
    assert.deepEqual(await found(() => ({ number: 3 })), ['stands in the place of 3']);
  });

  it('follow the one before', async () => {
    assert.deepEqual(await found(() => ({ previous: digestOf('another') })), ['does not follow the one before it']);
  });

  it('go on where their series was', async () => {
    const missing = ['does not go on where its series was'];
    assert.deepEqual(await found(({ from, to }) => ({ from: from + 1, to: to + 1 })), missing);
    const otherHead = (_: Checkpoint, first: Checkpoint, versions: string) => ({
      before: digestOf(first.head),
      head: headOf(digestOf(first.head), versions),
    });
    assert.deepEqual(await found(otherHead), missing);
    const otherSeries = { series: 'series_00000000-0000-7000-8000-000000000000' };
    assert.deepEqual(await found(() => otherSeries), missing);
  });

  it('count the versions', async () => {
    assert.deepEqual(await found(({ versions }) => ({ versions: versions + 1 })), ['counts the versions wrongly']);
  });

  it('seal versions that can be read', async () => {
    const resealed = ({ before, to, versions }: Checkpoint, _: Checkpoint, text: string) => ({
      to: to + 1,
      versions: versions + 1,
      head: headOf(before, text),
    });
    for (const line of ['9-9 written by hand', '9 dropped 9 receipt_00000000-0000-7000-8000-000000000000'])
      assert.deepEqual(await found(resealed, (text) => `${text}${line}\n`), ['has a version that is none']);
  });
});

describe('checkpoints and their copies', () => {
  it('are told apart where they cannot be read', () =>
    inBed(async (bed, store) => {
      await grow(store, owed(), 1);
      const contents = await bed.read();
      const sealed = { checkpoint: 'e30.e30.e30', versions: contents.sealed.get(1)?.versions ?? '' };
      await bed.put({ receipts: new Map(), lines: [], sealed: new Map([[1, sealed]]) });
      assert.deepEqual(await whats(store), ['is not signed by a key of the gateway', 'cannot be read']);
    }));

  it('are the same, also where only the checkpoint of the trimming is left', () =>
    inBed(async (_bed, store) => {
      await grow(store, owed(), 8);
      const copies: string[] = [];
      const last = async (): Promise<string> => (await verified(store)).last?.jws ?? '';
      const otherwise = (jws: string): string => {
        const checkpoint = readCheckpoint(jws);
        assert.ok(checkpoint);
        return signCheckpoint({ ...checkpoint, at: '2026-01-01T00:00:00.000Z' }, KEY);
      };
      copies.push(await last());
      const kept = await verified(store, { copies });
      assert.deepEqual([kept.findings, kept.outdated], [[], []]);
      assert.deepEqual(await whats(store, { copies: [otherwise(await last())] }), ['is not the one that was copied']);

      const one = owed();
      for (let trimmed = 0; trimmed < 8; ) {
        await grow(store, one, 1, 3);
        copies.push(await last());
        trimmed = readCheckpoint(await last())?.trimmed?.number ?? 0;
      }
      const { trimmed } = readCheckpoint(await last()) ?? {};
      const copy = copies.find((jws) => readCheckpoint(jws)?.number === trimmed?.number);
      assert.ok(copy, 'the newest checkpoint that was trimmed has no copy');
      const report = await verified(store, { copies: [copy] });
      assert.deepEqual([report.findings, report.outdated], [[], []]);
      assert.deepEqual(await whats(store, { copies: [otherwise(copy)] }), [
        'has trimmed another checkpoint than the one that was copied',
      ]);
    }));

  it('are of the merchant whose log is verified', () =>
    inBed(async (_bed, store) => {
      await grow(store, owed(), 1);
      const checkpoint = readCheckpoint((await verified(store)).last?.jws ?? '');
      assert.ok(checkpoint);
      const copy = signCheckpoint({ ...checkpoint, merchant: 'other' }, KEY);
      await assert.rejects(verified(store, { copies: [copy] }), /^RangeError: is a checkpoint of other$/);
    }));

  it('are missed, however many are gone', () =>
    inBed(async (bed, store) => {
      await grow(store, owed(), 60);
      const contents = await bed.read();
      const sealed = new Map([...contents.sealed].filter(([number]) => number < 5 || number > 50));
      await bed.put({ ...contents, sealed });
      const { findings } = await verified(store);
      const missing = findings.filter(({ what }) => what.endsWith('not there'));
      assert.deepEqual(missing, [
        { about: 'checkpoint 5', what: 'and those up to 24 are not there' },
        { about: 'checkpoint 25', what: 'and those up to 44 are not there' },
        { about: 'checkpoint 45', what: 'and those up to 50 are not there' },
      ]);
    }));
});

describe('a receipt', () => {
  it('that was dropped is not in the book again', () =>
    inBed(async (bed, store) => {
      await store.receipts.write([owed({ delivered: true })]);
      const first = await bed.read();
      await store.receipts.write([owed({ delivered: true })]);
      await store.tidy();
      await seal(store);
      const after = await bed.read();
      assert.deepEqual(await whats(store), []);
      await bed.put({ ...after, receipts: new Map([...first.receipts, ...after.receipts]) });
      assert.deepEqual(await whats(store), ['was dropped, and is in the book again']);
    }));

  it('is as old as it says itself, if its id names a later time', () =>
    inBed(async (bed, store) => {
      await grow(store, owed(), 1);
      const hour = 3_600_000;
      const early = receipt(receiptId(Date.now() + hour), 'early', { at: new Date(Date.now() - hour).toISOString() });
      const contents = await bed.read();
      await bed.put({ ...contents, receipts: new Map(contents.receipts).set(early.id, JSON.stringify(early)) });
      const { earlier, findings } = await verified(store);
      assert.deepEqual({ earlier, findings }, { earlier: 1, findings: [] });
    }));
});

describe('a receipt that is gone', () => {
  /** The id of a receipt of the same payment, from another time. */
  const ofSamePayment = (id: string, atMs: number): string =>
    `${receiptId(atMs).slice(0, 'receipt_00000000-0000-7'.length)}${id.slice('receipt_00000000-0000-7'.length)}`;

  it('gave way to none that is in no line of the log', () =>
    inBed(async (bed, store) => {
      const gone = owed();
      await store.receipts.write([gone, owed()]);
      await seal(store);
      const contents = await bed.read();
      const invented = receipt(ofSamePayment(gone.id, Date.now() - 3_600_000), 'invented');
      const receipts = new Map([...contents.receipts].filter(([id]) => id !== gone.id));
      await bed.put({ ...contents, receipts: receipts.set(invented.id, JSON.stringify(invented)) });
      assert.deepEqual(await whats(store), ['was removed: the log has it and does not say it was dropped']);
    }));

  it('gave way to none that it had replaced', () =>
    inBed(async (bed, store) => {
      const own = owed();
      const rebuilt = receipt(ofSamePayment(own.id, Date.now() - 1_000), 'chain');
      await store.receipts.write([rebuilt]);
      await store.receipts.write([own]);
      await seal(store);
      const contents = await bed.read();
      await bed.put({ ...contents, receipts: new Map([...contents.receipts].filter(([id]) => id === own.id)) });
      assert.deepEqual(await whats(store), []);
      await bed.put({ ...contents, receipts: new Map([...contents.receipts].filter(([id]) => id === rebuilt.id)) });
      assert.deepEqual(await whats(store), ['was removed: the log has it and does not say it was dropped']);
    }));
});

describe('a version that is sealed after a later one of its receipt', () => {
  it('does not show that the receipt was owed, once the log has trimmed that it was delivered', () =>
    inBed(async (bed, store) => {
      const [gone, one] = [owed(), owed()];
      const slow = await bed.open(undefined, LIMITS);
      await slow.receipts.write([gone]);
      await store.receipts.write([{ ...gone, delivered: true }, owed({ delivered: true })]);
      await grow(store, one, 2);
      await seal(slow);
      await store.tidy();
      await grow(store, one, 1, 1);
      const { first } = (await logOf(store).bounds()) ?? {};
      const { receipts, dropped, findings } = await verified(store);
      assert.deepEqual({ first, receipts, dropped, findings }, { first: 3, receipts: 2, dropped: 1, findings: [] });
    }));
});

describe('a log that grows while it is verified', () => {
  const firstOf = async (store: Store): Promise<number> => (await logOf(store).bounds())?.first ?? 0;
  /** Before the second page of checkpoints is read, those up to this number are trimmed. */
  const trimming = (store: Store, one: Receipt, number: number): Store =>
    before(store, 'sealed', 2, async () => {
      while ((await firstOf(store)) <= number) await grow(store, one, 1, 1);
    });

  it('is read again with the receipts that do not fit', () =>
    inBed(async (_bed, store) => {
      const one = owed();
      const write = async (durationMs: number): Promise<void> => {
        await store.receipts.write([{ ...one, durationMs }]);
      };
      await write(1);
      // One more after the book was read, and one before the second look at it.
      const moving = before(
        before(store, 'waiting', 1, () => write(2)),
        'receiptsOf',
        1,
        () => write(3),
      );
      const { versions, findings } = await verified(moving);
      assert.deepEqual({ versions, findings }, { versions: 3, findings: [] });
    }));

  it('may drop a receipt between the reading of the book and of the log', () =>
    inBed(async (_bed, store) => {
      await store.receipts.write([owed({ delivered: true })]);
      await store.receipts.write([owed({ delivered: true })]);
      const { receipts, dropped, findings } = await verified(before(store, 'waiting', 1, () => store.tidy()));
      assert.deepEqual({ receipts, dropped, findings }, { receipts: 1, dropped: 1, findings: [] });
    }));

  it('may trim what was not read yet', () =>
    inBed(async (_bed, store) => {
      const one = owed();
      await grow(store, one, 25);
      const { findings } = await verified(trimming(store, one, 23));
      assert.ok((await firstOf(store)) > 23);
      assert.deepEqual(findings, []);
    }));

  it('may trim that a receipt was delivered which it drops', () =>
    inBed(async (_bed, store) => {
      const [gone, one] = [owed(), owed()];
      await store.receipts.write([gone]);
      await grow(store, one, 20);
      await store.receipts.write([{ ...gone, delivered: true }, owed({ delivered: true })]);
      await grow(store, one, 3);
      await store.tidy();
      await grow(store, one, 3);
      const { dropped, findings } = await verified(trimming(store, one, 21));
      assert.equal(await firstOf(store), 23);
      assert.deepEqual({ dropped, findings }, { dropped: 1, findings: [] });
    }));
});
