/** The backend of the simulation. */

import { Readable } from 'node:stream';
import {
  BackendError,
  type BackendRequest,
  type Exchange,
  type ReserveBackend,
} from '../../../src/backend/exchange.ts';
import type { Fate } from './fate.ts';
import type { Mutant } from './mutant.ts';
import type { Process } from './process.ts';

/**
 * What becomes of one request. `fails`: 500, nothing done. `cut`: done, and the connection breaks
 * before the answer. `breaks`: done, the answer ends after its headers. `unwritten`: no connection.
 * `slow`: done, and the deadline passes first. `lags`: it answers after a second, and its buyer may
 * have left.
 */
export type MerchantFault = 'ok' | 'fails' | 'cut' | 'breaks' | 'unwritten' | 'slow' | 'lags';

const LAG_MS = 1_000;

/** What the backend did for one payment. */
export interface Work {
  /** Requests that reached it. */
  requests: number;
  executions: number;
}

/** The backend: it keeps, by idempotency key, what it did. */
export class SimMerchant {
  /** By the key that the gateway derives from the payment. */
  readonly work = new Map<string, Work>();
  readonly #honoursKeys: boolean;
  readonly #fate: Pick<Fate, 'merchant' | 'merchantAway'>;
  readonly #asked: (key: string, by: Process) => void;
  readonly #mutant: Pick<Mutant, 'exchange'>;

  constructor(
    honoursKeys: boolean,
    fate: Pick<Fate, 'merchant' | 'merchantAway'>,
    asked: (key: string, by: Process) => void,
    mutant: Pick<Mutant, 'exchange'>,
  ) {
    this.#honoursKeys = honoursKeys;
    this.#fate = fate;
    this.#asked = asked;
    this.#mutant = mutant;
  }

  /** Connections of one process, each for one call. */
  reserve(process: Process): ReserveBackend {
    return async () => {
      const away = this.#fate.merchantAway();
      await process.call('merchant.reserve', () => undefined);
      return away ? undefined : { exchange: this.exchange(process), release: () => undefined };
    };
  }

  /** The port of one process. */
  exchange(process: Process): Exchange {
    const exchange: Exchange = async (request, { timeoutMs }) => {
      const fault = this.#fate.merchant();
      await process.call('merchant.connect', () => undefined);
      if (fault === 'unwritten') throw new BackendError('unreachable', false);
      const slowMs = fault === 'slow' ? timeoutMs : fault === 'lags' ? LAG_MS : 0;
      const body = await process.call('merchant.request', () => this.#receive(request, fault, process), slowMs);
      if (fault === 'slow') throw new BackendError('timeout', true);
      if (fault === 'cut') throw new BackendError('transport', true);
      const status = fault === 'fails' ? 500 : 200;
      return { status, headers: { 'content-type': 'text/plain' }, body: Readable.from(bytes(process, body, fault)) };
    };
    return this.#mutant.exchange?.(exchange) ?? exchange;
  }

  #receive({ path, headers }: BackendRequest, fault: MerchantFault, by: Process): string {
    const key = headers['idempotency-key'] ?? '';
    const work = this.work.get(key) ?? { requests: 0, executions: 0 };
    this.work.set(key, work);
    work.requests += 1;
    this.#asked(key, by);
    if (fault !== 'fails' && !(this.#honoursKeys && work.executions > 0)) work.executions += 1;
    return path;
  }
}

async function* bytes(process: Process, body: string, fault: MerchantFault): AsyncGenerator<Uint8Array> {
  await process.call('merchant.body', () => undefined);
  if (fault === 'breaks') throw new BackendError('transport', true);
  yield new TextEncoder().encode(body);
}
