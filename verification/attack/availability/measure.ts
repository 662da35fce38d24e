/** Measures capacity, unloaded times and a flood of one gateway. */

import { join } from 'node:path';
import { freePorts } from '../../../spec/support/ports.ts';
import { INPUT, plainQuestion } from '../../bench/contestant.ts';
import { chooseCores } from '../../bench/cores.ts';
import {
  FREE_RESOURCE,
  gatewayProgram,
  invocationOf,
  PAID_RESOURCE,
  SOLD_OVER_HTTP,
} from '../../bench/peers/gateway.ts';
import { startProgram } from '../../bench/program.ts';
import { entriesOfSources, setStage } from '../../bench/stage.ts';
import type { CallKind } from './blend.ts';
import { startFlood } from './flood.ts';
import type { LoadTask } from './load-task.ts';
import { childThatRuns, machineMeter } from './machine.ts';
import type { Measured, Phase } from './verdict.ts';
import { watch } from './watchers.ts';

const WARM_UP_SECONDS = 4;
const MEASURE_SECONDS = 8;
/** Callers of the closed loop, and connections that the open loops share. */
const CALLERS = 32;
const CONNECTIONS = 512;
const UNLOADED_SHARE = 0.3;
const OVERLOAD = 3;
/**
 * More paid calls a second than a gateway answers on one core: the number of proofs for a closed
 * loop.
 */
const MAX_PAID_PER_SECOND = 2_000;
/** The chain in the configuration of the benchmark. */
const NETWORK = 'eip155:84532';
const BACKEND = join(import.meta.dirname, '../../bench/backend.ts');
const FACILITATOR = join(import.meta.dirname, 'approving-facilitator.ts');

/**
 * Measures capacity, unloaded times and a flood of `seconds` for one gateway and this blend. Ends
 * all that it started.
 */
export async function measureOverload(
  blend: readonly CallKind[],
  seconds: number,
  signal: AbortSignal,
): Promise<Measured> {
  await using ends = new AsyncDisposableStack();
  const cores = chooseCores();
  const [port = 0] = await freePorts(1);
  const facilitator = startProgram(cores.others, {
    args: [FACILITATOR],
    env: { PORT: String(port), NETWORK },
  });
  ends.defer(() => facilitator.stop());
  const facilitatorUrl = `http://127.0.0.1:${port}`;
  await facilitator.ready(`${facilitatorUrl}/supported`, signal);
  const stage = await setStage(ends, { cores, signal, profile: process.env['PROFILE'], entries: entriesOfSources() });
  const gateway = gatewayProgram('memory', SOLD_OVER_HTTP);
  const { origin, program } = await stage.start({
    id: `gateway-${[...new Set(blend)].join('-')}`,
    suite: 'free',
    title: 'gateway',
    question: plainQuestion(invocationOf(FREE_RESOURCE), 200, ''),
    readyPath: '/ready',
    program: (surroundings) => gateway({ ...surroundings, facilitatorUrl }),
  });
  const flood = startFlood(cores.others);
  ends.defer(() => flood.stop());
  const used = {
    gateway: program.pid,
    client: flood.pid,
    merchant: childThatRuns(BACKEND),
    facilitator: facilitator.pid,
  };
  const paidShare = blend.filter((kind) => kind === 'paid').length / blend.length;

  type Turn = Pick<LoadTask, 'connections' | 'seconds' | 'shape'>;

  /**
   * Connects and signs before the clock starts. The result runs the task and adds the use of the
   * machine meanwhile.
   */
  async function prepare(turn: Turn): Promise<() => Promise<Phase>> {
    const { shape } = turn;
    const paidPerSecond = shape.kind === 'open' ? shape.perSecond * paidShare : MAX_PAID_PER_SECOND;
    const proofs = paidShare === 0 ? 0 : Math.ceil(paidPerSecond * turn.seconds) + blend.length;
    const begin = await flood.prepare({
      ...turn,
      origin,
      path: invocationOf(FREE_RESOURCE),
      body: JSON.stringify(INPUT),
      priced: { path: invocationOf(PAID_RESOURCE), blend, proofs },
    });
    return async function measured() {
      const meter = machineMeter(used);
      const report = await begin();
      return { ...report, ...meter() };
    };
  }
  const measure = async (turn: Turn): Promise<Phase> => (await prepare(turn))();

  await measure({ connections: CALLERS, seconds: WARM_UP_SECONDS, shape: { kind: 'closed' } });
  const capacity = await measure({ connections: CALLERS, seconds: MEASURE_SECONDS, shape: { kind: 'closed' } });
  const perSecond = capacity.good / capacity.seconds;
  const calm = await measure({
    connections: CONNECTIONS,
    seconds: MEASURE_SECONDS,
    shape: { kind: 'open', perSecond: perSecond * UNLOADED_SHARE },
  });
  const overload = await prepare({
    connections: CONNECTIONS,
    seconds,
    shape: { kind: 'open', perSecond: perSecond * OVERLOAD },
  });
  const watched = watch({
    '/health': `${origin}/health`,
    '/ready': `${origin}/ready`,
    discovery: `${origin}/api/resources`,
  });
  const flooded = await overload();
  return { capacity, calm, flooded, overload: OVERLOAD, watched: await watched() };
}
