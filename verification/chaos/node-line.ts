import { setTimeout as delay } from 'node:timers/promises';
import { answerJson, cut, type Loopback, serveLoopback } from './loopback.ts';
import type { Plan } from './plan.ts';
import type { Weather } from './weather.ts';

/** How the line to the chain's node fails. */
const FAULTS = ['error', 'cut', 'slow'] as const;
const LONGEST_SLOW_MS = 1_400;

/**
 * The line between the gateways and the chain's node: everything passes, and now and then it fails.
 */
export function openNodeLine(rpcUrl: string, plan: Plan, weather: Weather): Promise<Loopback> {
  return serveLoopback(async ({ response, body }) => {
    const fault = weather.strike('rpc', '', plan.faults.rpc, FAULTS);
    if (fault?.kind === 'error') return answerJson(response, 503, { error: 'unavailable' });
    if (fault?.kind === 'cut') return cut(response);
    if (fault?.kind === 'slow') await delay(fault.seed.between(0, LONGEST_SLOW_MS));
    const passed = await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    answerJson(response, passed.status, await passed.json());
  });
}
