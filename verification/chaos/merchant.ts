/**
 * The backend of a run: honours idempotency keys, counts its work, and fails as `Faults` decides.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { answerJson, type HttpServer, resetConnection, serveHttp } from '../../spec/support/http-server.ts';
import type { Faults } from './faults.ts';
import type { Plan } from './plan.ts';

/** What the backend did for one Idempotency-Key. */
export interface Work {
  /** Number of its one execution, over all keys. */
  readonly execution: number;
  readonly resource: string;
  /** The inputs it was asked for under this key; more than one is a substitution. */
  readonly inputs: Set<string>;
  /** Requests that a backend without idempotency keys would have executed, Unix milliseconds. */
  readonly asked: number[];
}

/**
 * The backend of a run: honours idempotency keys, counts its work, and fails as `Faults` decides.
 */
export interface Merchant extends HttpServer {
  readonly work: ReadonlyMap<string, Work>;
}

/** The answer of every operation; it names its call. */
export interface Delivered {
  readonly resource: string;
  readonly input: string;
  readonly execution: number;
}

/** Delays below and above the gateway's deadline for the backend, milliseconds. */
const SLOW_MS = [100, 1_600] as const;
const FAULTS = ['error', 'executed_cut', 'executed_slow', 'cut'] as const;

/** Starts the backend: `GET …/{input}` for reports, `POST …` with `{ input }` for the others. */
export async function openMerchant(plan: Plan, faults: Faults): Promise<Merchant> {
  const work = new Map<string, Work>();
  let executions = 0;

  const execute = (key: string, resource: string, input: string): Delivered => {
    const known = work.get(key);
    known?.inputs.add(input);
    known?.asked.push(Date.now());
    if (known !== undefined) return { resource, input, execution: known.execution };
    executions += 1;
    const asked = [Date.now()];
    work.set(key, { execution: executions, resource, inputs: new Set([input]), asked });
    return { resource, input, execution: executions };
  };

  const server = await serveHttp(async ({ request, response, body }) => {
    const key = String(request.headers['idempotency-key'] ?? '');
    const [, resource = '', last = ''] = (request.url ?? '').split('/');
    const input =
      request.method === 'GET' ? decodeURIComponent(last) : (JSON.parse(body.toString()) as { input: string }).input;
    const fault = faults.next('merchant', key, plan.faults.merchant, FAULTS);
    if (fault?.kind === 'error') return answerJson(response, 500, { error: 'refused by the backend' });
    if (fault?.kind === 'cut') return resetConnection(response);
    const delivered = execute(key, resource, input);
    if (fault?.kind === 'executed_cut') return resetConnection(response);
    if (fault?.kind === 'executed_slow') await delay(fault.seed.between(...SLOW_MS));
    answerJson(response, 200, delivered);
  });
  return { ...server, work };
}
