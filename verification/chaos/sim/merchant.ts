/** The backend of the simulation. */

import { Readable } from 'node:stream';
import {
  type BackendAnswer,
  BackendError,
  type BackendRequest,
  type Exchange,
  type ReserveBackend,
} from '../../../src/backend/backend-exchange.ts';
import type { ErrorDetails } from '../../../src/errors.ts';
import type { PaymentResponse } from '../../../src/payments/x402/wire/types.ts';
import type { Relayed, ResponseWriter } from '../../../src/pipeline/call.ts';
import type { Fate } from './fate.ts';
import type { Process } from './gateway.ts';
import type { Schedule } from './schedule.ts';

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

  constructor(
    honoursKeys: boolean,
    fate: Pick<Fate, 'merchant' | 'merchantAway'>,
    asked: (key: string, by: Process) => void,
  ) {
    this.#honoursKeys = honoursKeys;
    this.#fate = fate;
    this.#asked = asked;
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
    return async (request, { timeoutMs }) => {
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

/** What a buyer sees of an attempt. `reset`: nothing, or a connection that broke. */
export type Reply =
  | { readonly kind: 'answer'; readonly body: string; readonly replayed: boolean }
  /** `answerOf`: behind its token. */
  | { readonly kind: 'challenge'; readonly answerOf: string }
  | {
      readonly kind: 'failed';
      readonly status: number;
      readonly code: string;
      readonly retryable: boolean;
      readonly details: ErrorDetails | undefined;
      readonly payment: PaymentResponse | undefined;
    }
  | { readonly kind: 'reset' };

/** A buyer's connection to one process. */
export class Connection {
  readonly process: Process;
  readonly reply: Promise<Reply>;
  readonly #schedule: Schedule;
  readonly #latencyMs: () => number;
  readonly #leaving = new AbortController();
  #answer: (reply: Reply) => void = () => undefined;
  open = true;

  constructor(process: Process, schedule: Schedule, latencyMs: () => number) {
    this.process = process;
    this.#schedule = schedule;
    this.#latencyMs = latencyMs;
    this.reply = new Promise((resolve) => {
      this.#answer = resolve;
    });
  }

  /**
   * The operating system has the bytes: they arrive although the process may die, unless the
   * connection is cut.
   */
  send(reply: Reply): void {
    if (!this.open) return;
    this.open = false;
    this.#schedule.after(this.#latencyMs(), {
      kind: 'world',
      label: `reply ${reply.kind}`,
      actor: undefined,
      run: () => this.#answer(reply),
    });
  }

  /** The process is gone, or the connection is cut. */
  cut(): void {
    this.send({ kind: 'reset' });
  }

  /** The buyer disconnects, which its gateway sees a little later. */
  hangUp(): void {
    if (!this.open) return;
    this.cut();
    const run = (): void => this.#leaving.abort();
    this.#schedule.after(this.#latencyMs(), { kind: 'wake', label: 'end of a connection', actor: this.process, run });
  }

  /** What the gateway has seen of that. */
  get left(): AbortSignal {
    return this.#leaving.signal;
  }
}

/** What the laws need of an answer. */
interface Handing {
  readonly body: string;
  readonly replayed: boolean;
}

/**
 * Writes outcomes to a connection, as the HTTP response writer does. Calls `onAnswer` when the last
 * byte is handed over.
 */
export function connectionWriter(
  connection: Connection,
  onAnswer: (answer: Handing) => void,
  onChallenge: () => void,
  lineIsCut: () => boolean,
): ResponseWriter {
  const { process } = connection;
  return {
    maxAnswerBytes: Number.POSITIVE_INFINITY,
    paymentRequired({ header }) {
      onChallenge();
      connection.send({ kind: 'challenge', answerOf: header });
    },
    failed({ status, code, retryable, details }, { payment }) {
      connection.send({ kind: 'failed', status, code, retryable, details, payment });
    },
    async relay(answer, { replayed = false, sending }) {
      const read = await readAll(answer);
      if (read instanceof BackendError) {
        connection.cut();
        return { kind: 'broken', error: read };
      }
      if (sending !== undefined && !(await sending())) connection.cut();
      return process.call<Relayed>('http.relay', () => {
        if (!connection.open) return { kind: 'client_gone' };
        onAnswer({ body: read, replayed });
        if (lineIsCut()) connection.cut();
        else connection.send({ kind: 'answer', body: read, replayed });
        return { kind: 'finished' };
      });
    },
  };
}

function readAll({ body }: BackendAnswer): Promise<string | BackendError> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    body.on('data', (chunk: Uint8Array) => chunks.push(chunk));
    body.once('end', () => resolve(Buffer.concat(chunks).toString()));
    body.once('error', (error) => resolve(error instanceof BackendError ? error : new BackendError('transport', true)));
  });
}
