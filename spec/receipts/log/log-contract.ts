import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Receipt, receiptId } from '../../../src/receipts/receipt.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { holder, move, receipt, terms } from '../../payments/ledger/samples.ts';
import { granted, LEASE_MS } from '../../store/opened.ts';
import { before, freshKey, KEY, type LogBed, MERCHANT, seal, verified } from './log-bed.ts';
import { changesOf, grown, steps, tailCuts } from './tampering.ts';

/** Random logs; of each, every single change. */
const LOGS = 5;
/** How long a failure is made smaller, milliseconds. */
const LONGEST_MS = 90_000;

export function logContract(name: string, openBed: () => Promise<LogBed>): void {
  const inBed = async (then: (bed: LogBed, store: Store) => Promise<void>): Promise<void> => {
    const bed = await openBed();
    try {
      await then(bed, await bed.open());
    } finally {
      await bed.close();
    }
  };
  const whats = async (store: Store, more?: Parameters<typeof verified>[1]): Promise<readonly string[]> =>
    (await verified(store, more)).findings.map(({ what }) => what);
  const owed = (more: Partial<Receipt> = {}) => receipt(receiptId(), 'request', more);
  const delivered = () => owed({ delivered: true });

  describe(`${name}: the log of receipts`, () => {
    it('finds every single removal, change and swap in random logs, and nothing in what gateways wrote', async (t) => {
      let [logs, changes, cuts] = [0, 0, 0];
      await fc.assert(
        fc.asyncProperty(steps, async (drawn) => {
          const bed = await openBed();
          try {
            const { store, newest } = await grown(bed, drawn);
            const contents = await bed.read();
            assert.deepEqual((await verified(store, { copies: newest })).findings, []);
            for (const { name: change, contents: changed } of changesOf(contents)) {
              await bed.put(changed);
              assert.notDeepEqual((await verified(store)).findings, [], `not found: ${change}`);
              changes += 1;
            }
            for (const { name: cut, contents: changed } of tailCuts(contents)) {
              await bed.put(changed);
              const copies = newest.slice(-1);
              assert.match((await whats(store, { copies })).join(), /ends at checkpoint/, `not found: ${cut}`);
              cuts += 1;
            }
            await bed.put(contents);
            assert.deepEqual((await verified(store)).findings, []);
            logs += 1;
          } finally {
            await bed.close();
          }
        }),
        { numRuns: LOGS, interruptAfterTimeLimit: LONGEST_MS, markInterruptAsFailure: false },
      );
      t.diagnostic(`${logs} logs, ${changes} changes, ${cuts} cuts`);
      assert.ok(changes > 100);
    });

    it('seals what each process wrote as a series of its own, in one chain', () =>
      inBed(async (bed, one) => {
        const other = await bed.open();
        await one.receipts.write([owed(), owed()]);
        await other.receipts.write([delivered()]);
        await seal(one);
        await seal(other);
        const { checkpoints, versions, waiting, receipts, last, findings } = await verified(one);
        assert.deepEqual(
          { checkpoints, versions, waiting, receipts, findings },
          {
            checkpoints: 2,
            versions: 3,
            waiting: 0,
            receipts: 3,
            findings: [],
          },
        );
        assert.equal(last?.number, 2);
      }));

    it('has the versions of payments, in the write of their transition', () =>
      inBed(async (_bed, store) => {
        const record = granted(await store.ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: LEASE_MS }));
        const first = receipt(record.receiptId, 'moving');
        await store.ledger.advance(move(record, 'settling'));
        await store.ledger.advance(move(record, 'settled', { receipt: first }));
        assert.deepEqual((await verified(store)).versions, 1);
        await store.ledger.note({ ...holder(record), leaseMs: LEASE_MS, receipt: { ...first, durationMs: 13 } });
        const step = holder(record);
        const last = {
          ...step,
          to: 'delivered',
          leaseMs: 0,
          events: [],
          receipt: { ...first, delivered: true },
        } as const;
        await store.ledger.advance(last);
        await store.ledger.advance(last);
        const { versions, findings } = await verified(store);
        assert.deepEqual([versions, findings], [3, []]);
      }));

    it('knows that the receipt of a payment that was never made is gone', () =>
      inBed(async (_bed, store) => {
        const record = granted(await store.ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: LEASE_MS }));
        await store.ledger.advance(move(record, 'settling'));
        const unknown = move(record, 'unresolved', { receipt: receipt(record.receiptId, 'unknown') });
        assert.equal((await store.ledger.advance(unknown)).kind, 'done');
        const refused = move(record, 'refused', { dropReceipt: record.receiptId });
        assert.equal((await store.ledger.advance(refused)).kind, 'done');
        const { dropped, receipts, findings } = await verified(store);
        assert.deepEqual({ dropped, receipts, findings }, { dropped: 1, receipts: 0, findings: [] });
      }));

    it('knows that a receipt that was rebuilt gave way to the own one of its payment', () =>
      inBed(async (_bed, store) => {
        const random = Buffer.alloc(16, 7);
        const payment = { payment: { replayKey: '07'.repeat(32) } } as Pick<Receipt, 'payment'>;
        const [rebuilt, own] = [receiptId(1_900_000_000_000, random), receiptId(1_900_000_000_001, random)];
        await store.receipts.add([receipt(rebuilt, 'chain', payment)]);
        await store.receipts.write([receipt(own, 'buyer', payment)]);
        const { receipts, findings } = await verified(store);
        assert.deepEqual({ receipts, findings }, { receipts: 1, findings: [] });
      }));

    it('tells what was dropped by count from what was removed', () =>
      inBed(async (bed) => {
        const store = await bed.open(undefined, { eventsMaxLength: 100, receiptsMaxLength: 3 });
        const kept = owed();
        await store.receipts.write([kept, ...Array.from({ length: 10 }, delivered)]);
        assert.equal((await store.receipts.counts()).done, 10);
        await store.tidy();
        assert.equal((await store.receipts.counts()).done, 3);
        assert.equal(store.receipts.trimmed().length, 7);
        const { dropped, findings } = await verified(store);
        assert.deepEqual({ dropped, findings }, { dropped: 7, findings: [] });
        const contents = await bed.read();
        await bed.put({ ...contents, receipts: new Map([...contents.receipts].slice(1)) });
        assert.match((await whats(store)).join(), /^was removed/);
      }));

    it('tells an owed receipt that was dropped because another hand made it look delivered', () =>
      inBed(async (bed) => {
        const store = await bed.open(undefined, { eventsMaxLength: 100, receiptsMaxLength: 1 });
        const gone = owed();
        await store.receipts.write([gone, delivered()]);
        await seal(store);
        const contents = await bed.read();
        const changed = JSON.stringify({ ...gone, delivered: true });
        await bed.put({ ...contents, receipts: new Map(contents.receipts).set(gone.id, changed) });
        await store.receipts.write([delivered()]);
        await store.tidy();
        const dropped = ['was dropped as delivered, and no gateway had delivered it'];
        assert.deepEqual(await whats(store), dropped);
        await seal(store);
        assert.deepEqual(await whats(store), dropped);
      }));

    it('does not carry a version that is no more the present one', () =>
      inBed(async (bed) => {
        const store = await bed.open(undefined, { eventsMaxLength: 100, receiptsMaxLength: 1 });
        const one = owed();
        await store.receipts.write([one]);
        await seal(store);
        await store.receipts.write([owed()]);
        await seal(store);
        await store.receipts.write([owed()]);
        const written = before(store, 'seal', 1, () =>
          store.receipts.write([{ ...one, delivered: true }, delivered()]),
        );
        await seal(written, { maxVersions: 1 });
        const carried = [...(await bed.read()).sealed.values()].flatMap(
          ({ versions }) => versions.match(/carried.*/g) ?? [],
        );
        assert.ok(carried.length > 0, 'nothing was carried');
        assert.ok(!carried.some((version) => version.includes(one.id)));
        await store.tidy();
        for (let at = 0; at < 4; at += 1) {
          await store.receipts.write([owed()]);
          await seal(store, { maxVersions: 1 });
        }
        assert.deepEqual(await whats(store), []);
      }));

    it('drops by age as well, and says so', () =>
      inBed(async (bed) => {
        const store = await bed.open(undefined, {
          eventsMaxLength: 100,
          receiptsMaxLength: 50,
          receiptsMaxAgeMs: 1_000,
        });
        await store.receipts.write([receipt(receiptId(Date.now() - 60_000), 'old', { delivered: true }), delivered()]);
        await store.tidy();
        assert.deepEqual(store.receipts.trimmed(), { length: 0, age: 1 });
        const { dropped, findings } = await verified(store);
        assert.deepEqual({ dropped, findings }, { dropped: 1, findings: [] });
      }));

    it('takes a receipt that becomes again what it was', () =>
      inBed(async (_bed, store) => {
        const first = owed();
        for (const one of [first, { ...first, durationMs: 13 }, first]) await store.receipts.write([one]);
        const { versions, findings } = await verified(store);
        assert.deepEqual({ versions, findings }, { versions: 3, findings: [] });
      }));

    it('finds a receipt that was put back to an earlier version', () =>
      inBed(async (bed, store) => {
        const first = owed();
        await store.receipts.write([first]);
        const before = await bed.read();
        await store.receipts.write([{ ...first, delivered: true }]);
        await seal(store);
        await bed.put({ ...(await bed.read()), receipts: before.receipts });
        assert.deepEqual(await whats(store), ['was put back to an earlier version']);
        // Nor does it help to say the earlier version again.
        const contents = await bed.read();
        await bed.put({ ...contents, lines: [{ position: '2000000000000-0', line: before.lines[0]?.line ?? '' }] });
        assert.deepEqual(await whats(store), ['was put back to an earlier version']);
      }));

    it('seals what a process left behind that died, and is sealed by another one that stood still', () =>
      inBed(async (bed, one) => {
        const other = await bed.open();
        await one.receipts.write([owed()]);
        await seal(one);
        await one.receipts.write([owed()]);
        await seal(other);
        assert.equal((await verified(one)).waiting, 1);
        await seal(other, { leftBehindMs: 0 });
        await one.receipts.write([owed()]);
        await seal(one);
        const { waiting, checkpoints, findings } = await verified(one);
        assert.deepEqual({ waiting, checkpoints, findings }, { waiting: 0, checkpoints: 3, findings: [] });
      }));

    it('is sealed by two processes at a time', () =>
      inBed(async (bed, one) => {
        const stores = [one, await bed.open(), await bed.open()];
        for (let round = 0; round < 5; round += 1) {
          await Promise.all(stores.map((store) => store.receipts.write([owed()])));
          await Promise.all(stores.map((store) => seal(store)));
        }
        const { waiting, checkpoints, findings } = await verified(one);
        assert.deepEqual({ waiting, checkpoints, findings }, { waiting: 0, checkpoints: 15, findings: [] });
      }));

    it('leaves a signed checkpoint of what it trimmed, and carries the versions of what is still in the book', () =>
      inBed(async (bed, store) => {
        const kept = owed();
        await store.receipts.write([kept]);
        await seal(store);
        const first = (await verified(store)).last?.jws ?? '';
        for (let at = 0; at < 12; at += 1) {
          await store.receipts.write([
            { ...owed(), id: 'receipt_00000000-0000-7000-8000-000000000001', durationMs: at },
          ]);
          await seal(store, { maxVersions: 5 });
        }
        const { sealed } = await bed.read();
        assert.ok(Math.min(...sealed.keys()) > 1, 'nothing was trimmed');
        const report = await verified(store, { copies: [first] });
        assert.deepEqual([report.findings, report.outdated], [[], [1]]);
        const contents = await bed.read();
        const changed = new Map(contents.receipts).set(kept.id, JSON.stringify({ ...kept, delivered: true }));
        await bed.put({ ...contents, receipts: changed });
        assert.match((await whats(store)).join(), /^was changed/);
        await bed.put({ ...contents, sealed: new Map([...contents.sealed].slice(1)) });
        assert.match((await whats(store)).join(), /is not there/);
      }));

    it('says what is older than itself, and since when an operator wants to know', () =>
      inBed(async (bed, store) => {
        const early = receipt(receiptId(Date.now() - 60_000), 'early');
        await store.receipts.write([owed()]);
        await seal(store);
        const contents = await bed.read();
        await bed.put({ ...contents, receipts: new Map(contents.receipts).set(early.id, JSON.stringify(early)) });
        const { earlier, findings } = await verified(store);
        assert.deepEqual({ earlier, findings }, { earlier: 1, findings: [] });
        const late = receipt(receiptId(Date.now() + 10), 'late', { at: new Date(Date.now() + 10).toISOString() });
        await bed.put({ ...contents, receipts: new Map(contents.receipts).set(late.id, JSON.stringify(late)) });
        assert.deepEqual(await whats(store), ['is in the book, and no gateway wrote it']);
        assert.deepEqual(await whats(store, { sinceMs: Date.now() + 60_000 }), []);
      }));

    it('finds that it is gone as a whole', () =>
      inBed(async (bed, store) => {
        assert.deepEqual(await whats(store), []);
        await store.receipts.write([owed()]);
        await seal(store);
        const { last } = await verified(store);
        await bed.put({ ...(await bed.read()), sealed: new Map() });
        assert.match((await whats(store)).join(), /^is empty beside 1 receipts/);
        await bed.put({ receipts: new Map(), sealed: new Map(), lines: [] });
        assert.match((await whats(store, { copies: [last?.jws ?? ''] })).join(), /^ends at checkpoint 0/);
      }));

    it('is of one merchant and of the keys of the configuration', () =>
      inBed(async (bed, store) => {
        await store.receipts.write([owed()]);
        await seal(store, { merchant: 'other' });
        assert.deepEqual(await whats(store), ['is one of other']);
        const stranger = freshKey();
        const strange = await bed.open(stranger);
        await strange.receipts.write([owed()]);
        assert.match((await whats(store)).join(), /no holder of the key/);
        await seal(strange, { key: stranger });
        assert.ok((await whats(store)).includes('is not signed by a key of the gateway'));
        const copy = (await verified(store)).last?.jws ?? '';
        await assert.rejects(verified(store, { copies: [copy] }), /signed by none of the keys/);
        await assert.rejects(verified(store, { copies: ['x'] }), /is no checkpoint/);
      }));

    it('is verified while gateways write, seal and drop', () =>
      inBed(async (bed) => {
        const limits = { eventsMaxLength: 100, receiptsMaxLength: 20 };
        const store = await bed.open(undefined, limits);
        const other = await bed.open(undefined, limits);
        let done = false;
        const write = async (): Promise<void> => {
          while (!done) {
            const one = owed();
            await other.receipts.write([one]);
            await other.receipts.write([{ ...one, delivered: true }]);
            await seal(other, { maxVersions: 40 });
            await other.tidy();
          }
        };
        const writing = write();
        try {
          for (let at = 0; at < 25; at += 1) assert.deepEqual((await verified(store)).findings, []);
        } finally {
          done = true;
          await writing;
        }
      }));

    it('tells a process that what it saw is gone, and that another hand wrote', () =>
      inBed(async (bed, store) => {
        const told: string[] = [];
        const { createSealer } = await import('../../../src/receipts/log/sealer.ts');
        const { receiptLog } = store;
        assert.ok(receiptLog);
        const onTampering = ({ what }: { readonly what: string }) => void told.push(what);
        const sealer = createSealer(receiptLog, { merchant: MERCHANT, key: KEY, maxVersions: 100, onTampering });
        await store.receipts.write([owed()]);
        await sealer.seal();
        const contents = await bed.read();
        await bed.put({ ...contents, lines: [{ position: '9-0', line: 'no line' }] });
        await sealer.seal();
        await sealer.seal();
        assert.deepEqual(told, ['foreign']);
        await bed.put({ ...contents, sealed: new Map() });
        await store.receipts.write([owed()]);
        await sealer.seal();
        assert.deepEqual(told, ['foreign', 'lost']);
      }));
  });
}
