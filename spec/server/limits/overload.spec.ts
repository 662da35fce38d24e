import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LONG_TURN_MS, MAX_WAIT_MS } from '../../../src/server/limits/load-shedding.ts';
import { type Became, ModelledProcess, type Work } from './modelled-process.ts';

const FREE: Work = { kind: 'plain', beginMs: 0.06, pieces: [{ afterMs: 0.5, workMs: 0.04 }] };
const UNPAID: Work = { kind: 'plain', beginMs: 0.05, pieces: [] };
const HANGING: Work = { kind: 'plain', beginMs: 0.06, pieces: [{ afterMs: 1_000, workMs: 0.04 }] };
/** The facilitator takes 50 ms; the rest is the store and the backend. */
const PAID: Work = {
  kind: 'proof',
  beginMs: 0.3,
  pieces: [
    { afterMs: 0.3, workMs: 0.1 },
    { afterMs: 50, workMs: 0.15 },
    { afterMs: 0.3, workMs: 0.1 },
    { afterMs: 1, workMs: 0.15 },
    { afterMs: 0.3, workMs: 0.1 },
  ],
};
/** Nearly all work comes long after the begin, where the begin cannot be what bounds it. */
const LATE: Work = { kind: 'plain', beginMs: 0.02, pieces: [{ afterMs: 100, workMs: 0.9 }] };

const SECONDS = 2;
const WARM_MS = 500;

function run(process: ModelledProcess, ...clients: readonly (readonly [Work, number])[]): Promise<readonly Became[]> {
  return process.run(
    clients.map(([work, count]) => ({ work, count })),
    WARM_MS + SECONDS * 1_000,
    WARM_MS,
  );
}

async function alone(work: Work, count: number): Promise<Became> {
  const [became] = await run(new ModelledProcess(), [work, count]);
  assert.ok(became);
  return became;
}

function percentile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}

const BUYS: Work = { ...PAID, standing: 'paid', pieces: PAID.pieces.map((piece) => ({ ...piece, afterMs: 0.3 })) };

const PEAK = (await alone(FREE, 32)).served;
const QUIET_MS = percentile((await alone(PAID, 8)).tookMs, 0.99);
const QUIET = (await alone(BUYS, 8)).served;

describe('clients that ask again at once', () => {
  for (const count of [256, 1_000, 4_000])
    it(`are served by ${count} connections as by 32, and none is refused`, async () => {
      const process = new ModelledProcess();
      const [became] = await run(process, [FREE, count]);
      assert.ok((became?.served ?? 0) > 0.98 * PEAK, `${became?.served} of ${PEAK}`);
      assert.equal(became?.refused, 0);
      assert.ok(percentile(process.turnsMs, 0.99) < LONG_TURN_MS / 2, 'a probe waits for few milliseconds');
    });
});

describe('payments beyond what the process can do', () => {
  it('are served at its full speed in short turns', async () => {
    const process = new ModelledProcess();
    const [became] = await run(process, [PAID, 1_000]);
    const workMs = PAID.pieces.reduce((sum, piece) => sum + piece.workMs, PAID.beginMs);
    assert.ok((became?.served ?? 0) * workMs > 0.9 * SECONDS * 1_000, `${became?.served}`);
    assert.ok(percentile(process.turnsMs, 0.99) < LONG_TURN_MS);
  });

  it('are refused only after their wait, and no refusal takes time from those that are served', async () => {
    const [less, more] = [await alone(PAID, 1_000), await alone(PAID, 3_000)];
    assert.ok(more.served > 0.85 * less.served, `${more.served} of ${less.served}`);
    assert.ok(more.refused > 0 && more.refused <= (3_000 * SECONDS * 1_000) / MAX_WAIT_MS);
  });

  it('leave free calls beside them their share', async () => {
    const [paid, free] = await run(new ModelledProcess(), [PAID, 500], [FREE, 16]);
    assert.ok((paid?.served ?? 0) > 0.8 * (await alone(PAID, 500)).served);
    assert.ok(percentile(free?.tookMs ?? [], 0.99) < 50);
  });
});

describe('paid calls', () => {
  for (const [title, work] of [
    ['unpaid calls', UNPAID],
    ['free calls', FREE],
  ] as const)
    it(`take little longer beside a flood of ${title}`, async () => {
      const [, paid] = await run(new ModelledProcess(), [work, 1_000], [PAID, 8]);
      const beside = percentile(paid?.tookMs ?? [], 0.99);
      assert.ok(beside < QUIET_MS + 10 * LONG_TURN_MS, `${beside} ms, alone ${QUIET_MS} ms`);
      assert.equal(paid?.refused, 0);
    });
});

describe('purchases of buyers who come again', () => {
  const floods: readonly (readonly [string, Work])[] = [
    ['unpaid calls', UNPAID],
    ['documents or 404s', { kind: 'other', beginMs: 0.1, pieces: [] }],
    ['messages', { kind: 'message', beginMs: 0.1, pieces: [] }],
    ['forged proofs', { kind: 'proof', standing: 'failed', beginMs: 0.3, pieces: [] }],
  ];
  for (const [title, flood] of floods)
    for (const count of [600, 1_500])
      it(`keep 70 % of what they are alone, beside ${count} connections of ${title}`, async () => {
        const [, bought] = await run(new ModelledProcess(), [flood, count], [BUYS, 8]);
        assert.ok((bought?.served ?? 0) >= 0.7 * QUIET, `${bought?.served} of ${QUIET}`);
        assert.equal(bought?.refused, 0);
      });
});

describe('slow work', () => {
  it('at a backend that hangs fills the slots; what finds none in time is refused', async () => {
    const process = new ModelledProcess(512);
    const [became] = await run(process, [HANGING, 2_000]);
    assert.equal(process.mostInFlight, 512);
    assert.ok((became?.refused ?? 0) > 0);
  });

  it('at a backend that hangs makes no long turn, though all that wait are refused at once', async () => {
    const process = new ModelledProcess(512);
    await run(process, [HANGING, 4_000]);
    // All of them come in the first turns.
    const longest = Math.max(...process.turnsMs.slice(8));
    assert.ok(longest < LONG_TURN_MS, `${longest} ms`);
  });

  it('of the process itself, late in a call, gets a limit that leaves the core busy', async () => {
    const process = new ModelledProcess();
    const settledMs = 3_000;
    const [became] = await process.run([{ work: LATE, count: 256 }], settledMs + SECONDS * 1_000, settledMs);
    const late = process.turnsMs.slice(Math.floor(process.turnsMs.length / 2));
    assert.ok((became?.served ?? 0) * 0.92 > 0.6 * SECONDS * 1_000, `${became?.served}`);
    assert.ok(percentile(late, 0.999) < 60, `${percentile(late, 0.999)} ms`);
  });
});
