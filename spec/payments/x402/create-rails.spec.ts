import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RailFault } from '../../../src/payments/rail.ts';
import type { X402Rail } from '../../../src/payments/x402/create-rail.ts';
import { createRails } from '../../../src/payments/x402/create-rails.ts';
import type { Examination } from '../../../src/payments/x402/verify/verify.ts';
import { decodeProof, encodeProof } from '../../../src/payments/x402/wire/proof.ts';
import type { X402Config } from '../../../src/payments/x402/wire/settings.ts';
import { entryOf, freshAccount, genuineProof, offerFor, payloadFor, RESOURCE_URL, termsFor } from './signing.ts';

const silentLog = { info: () => undefined, warn: () => undefined };

describe('the choice among rails', () => {
  const [base, polygon] = [termsFor(undefined, 8453), termsFor(undefined, 137)];
  const euro = termsFor(undefined, 8453);
  const entries = [base, euro, polygon].map((terms) => entryOf(terms));
  const examination = {} as Examination;

  /** A rail for each entry; `asked` has the index of each rail that was asked, and what. */
  const stubs = async (check: (at: number) => Promise<RailFault | undefined> = async () => undefined) => {
    const asked: [at: number, what: string][] = [];
    const lines: object[] = [];
    const log = { info: (facts: object) => void lines.push(facts), warn: (facts: object) => void lines.push(facts) };
    const rails = await createRails(entries, log, async (entry, own): Promise<X402Rail> => {
      const at = entries.indexOf(entry);
      const note = <T>(what: string, answer: T): T => {
        asked.push([at, what]);
        return answer;
      };
      own.info({}, 'open');
      return {
        facilitator: at === 0 ? 'local' : 'remote',
        seesChain: () => at !== 2,
        verify: async () => note('verify', { kind: 'valid' }),
        settle: async (_proof, _offer, _writeAhead, history) =>
          note(`settle ${history?.transaction}`, { kind: 'settled', evidence: 'logs', transaction: `0x${at}` }),
        reconcile: async (_proof, _offer, history) => note(`reconcile ${history?.transaction}`, { kind: 'open' }),
        ...(at === 0 ? { markOf: async (transaction: string) => transaction } : {}),
        ...(at === 1 ? { sentBack: async () => true } : {}),
        check: () => check(at),
        examine: () => note('examine', examination),
        renew: ([renewed, ...others]) => note(`renew ${renewed?.offered} ${others.length}`, undefined),
        away: () => new Set(),
        close: async () => note('close', undefined),
      };
    });
    return { rails, asked, lines };
  };

  for (const [at, terms] of [base, euro, polygon].entries())
    it(`asks rail ${at} alone about a payment in its asset, however that is written`, async () => {
      const { rails, asked } = await stubs();
      const proof = await genuineProof(freshAccount(), terms);
      const offer = { ...offerFor(terms), asset: terms.asset.toUpperCase().replace('0X', '0x') };
      const history = { sentBefore: true, transaction: '0xaa' };
      assert.equal((await rails.verify(proof, offer)).kind, 'valid');
      const settled = await rails.settle(proof, offer, async () => undefined, history);
      assert.deepEqual(settled.kind === 'settled' && settled.transaction, `0x${at}`);
      assert.equal((await rails.reconcile(proof, offer, history)).kind, 'open');
      const decoded = decodeProof(encodeProof(await payloadFor(freshAccount(), terms)));
      assert.ok(decoded.kind === 'decoded');
      const candidate = { decoded, offer, resourceUrl: RESOURCE_URL, nowMs: Date.now() };
      assert.equal(rails.examine(candidate), examination);
      assert.deepEqual(
        asked,
        ['verify', 'settle 0xaa', 'reconcile 0xaa', 'examine'].map((what) => [at, what]),
      );
      assert.equal(rails.seesChain(offer), at !== 2);
      assert.equal(await rails.markOf?.('0xbb', proof, offer), at === 0 ? '0xbb' : undefined);
      assert.equal(await rails.sentBack?.(proof, offer), at === 1);
    });

  it('asks none about a payment in another asset, and names what is configured', async () => {
    const { rails, asked } = await stubs();
    const proof = await genuineProof(freshAccount(), base);
    for (const elsewhere of [{ network: 'eip155:1' }, { asset: polygon.asset }]) {
      const offer = { ...offerFor(base), ...elsewhere };
      const verdict = await rails.verify(proof, offer);
      const settlement = await rails.settle(proof, offer, async () => undefined);
      const reading = await rails.reconcile(proof, offer);
      assert.deepEqual([verdict.kind, settlement.kind, reading.kind], ['unavailable', 'uncertain', 'unknown']);
      for (const { network, asset } of entries)
        for (const answer of [verdict, settlement, reading])
          assert.match(JSON.stringify(answer), new RegExp(`${asset} on ${network}[,:]`));
      assert.deepEqual([rails.seesChain(offer), await rails.sentBack?.(proof, offer)], [true, false]);
    }
    assert.deepEqual(asked, []);
  });

  it('gives each rail its own part of a configuration, closes all, and names the network in their lines', async () => {
    const { rails, asked, lines } = await stubs();
    rails.renew([entries[0], { ...entries[1], offered: false }, entries[2]] as X402Config[], () => undefined);
    await rails.close();
    assert.deepEqual(asked, [
      ...[true, false, true].map((offered, at) => [at, `renew ${offered} 0`]),
      ...[0, 1, 2].map((at) => [at, 'close']),
    ]);
    assert.deepEqual(
      lines,
      entries.map(({ network }) => ({ network })),
    );
  });

  it('puts no wrapper around the rail of one entry', async () => {
    const { rails } = await stubs();
    assert.equal(await createRails(entries.slice(0, 1), silentLog, async () => rails), rails);
  });

  it('closes the others where one does not open, and names its network', async () => {
    const closed: string[] = [];
    const opening = createRails(entries, silentLog, async (entry) => {
      if (entry === entries[2]) throw new Error('assetName is A, not B');
      return { ...(await stubs()).rails, close: async () => void closed.push(entry.asset) };
    });
    await assert.rejects(opening, /^Error: eip155:137: assetName is A, not B$/);
    assert.deepEqual(closed, [base.asset, euro.asset]);
  });

  describe('readiness', () => {
    const down = { found: 'unreachable', cause: 'no node' } as const;
    const poor = { found: 'degraded', cause: 'little gas' } as const;
    type Health = readonly [faults: (RailFault | undefined)[], found: RailFault['found'] | undefined, away: number[]];
    const cases: Readonly<Record<string, Health>> = {
      'all are well': [[undefined, undefined, undefined], undefined, []],
      'one is away': [[undefined, undefined, down], 'degraded', [2]],
      'one has little gas': [[poor, undefined, undefined], 'degraded', []],
      'two are away and one has little gas': [[down, poor, down], 'degraded', [0, 2]],
      'all are away': [[down, down, down], 'unreachable', []],
    };
    for (const [what, [faults, found, away]] of Object.entries(cases))
      it(`${what}: ${found ?? 'ok'}`, async () => {
        const { rails } = await stubs(async (at) => faults[at]);
        const health = await rails.check();
        assert.deepEqual([health?.found, [...rails.away()]], [found, away]);
        for (const [at, fault] of faults.entries())
          if (fault !== undefined)
            assert.match(health?.cause ?? '', new RegExp(`${entries[at]?.network}: ${fault.cause}`));
      });

    it('does not count what is no longer offered, and follows each check', async () => {
      const faults: (RailFault | undefined)[] = [down, undefined, down];
      const { rails, lines } = await stubs(async (at) => faults[at]);
      lines.length = 0;
      await rails.check();
      const now = entries.map((entry, at) => ({ ...entry, offered: at !== 1 }));
      rails.renew(now, () => undefined);
      assert.deepEqual([...rails.away()], [], 'all that is offered is away');
      assert.equal((await rails.check())?.found, 'unreachable');
      faults[0] = undefined;
      assert.equal((await rails.check())?.found, 'degraded');
      assert.deepEqual([...rails.away()], [2]);
      assert.deepEqual(
        lines.map((line) => 'network' in line && [line.network, 'cause' in line]),
        [
          ['eip155:8453', true],
          ['eip155:137', true],
          ['eip155:8453', false],
        ],
      );
    });

    it('waits less than a second for a check that hangs, and asks that rail once', async () => {
      let asked = 0;
      const { rails } = await stubs((at) => {
        if (at !== 1) return Promise.resolve(undefined);
        asked += 1;
        return new Promise(() => undefined);
      });
      const since = performance.now();
      assert.equal((await rails.check())?.found, 'degraded');
      assert.ok(performance.now() - since < 1_000);
      await rails.check();
      assert.deepEqual([[...rails.away()], asked], [[1], 1]);
    });
  });
});
