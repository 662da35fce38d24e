/** The connection between buyer and gateway in the simulation. */

import { type BackendAnswer, BackendError } from '../../../src/backend/exchange.ts';
import type { ErrorDetails } from '../../../src/errors.ts';
import type { PaymentResponse } from '../../../src/payments/x402/wire/types.ts';
import type { Relayed, ResponseWriter } from '../../../src/pipeline/call.ts';
import type { Process } from './process.ts';
import type { Schedule } from './schedule.ts';

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
export interface Handing {
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
