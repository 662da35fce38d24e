import type { Journal } from '../../../src/events/journal.ts';
import type { KeptAnswer } from '../../../src/payments/ledger/ledger.ts';
import type { Worked, WorkFirst } from '../../../src/payments/settlement/settlement-request.ts';

/** What the backend answers, unless a test scripts something else. */
export const ANSWER: KeptAnswer = {
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: new Uint8Array(Buffer.from('{"report":1}')),
};
/** It failed with 500. */
export const BROKEN: Worked = { kind: 'failed', failure: { status: 500, requestWritten: true } };
/** Its answer is too large to be kept. */
export const TOO_LARGE: Worked = {
  kind: 'failed',
  failure: { status: 0, reason: 'response_too_large', requestWritten: true },
};

/** A backend that answers before the money moves, as a test scripts it. At first it answers. */
export function scriptedWork() {
  /** The payments it was called for, in order. */
  const called: string[] = [];
  const script = { answer: async (): Promise<Worked> => ({ kind: 'answer', answer: ANSWER }) };
  /** As the middleware calls it: over the held connection, and with its event. */
  const callIn =
    (journal: Journal): WorkFirst['call'] =>
    async ({ payId }, held) => {
      called.push(payId);
      const worked = await script.answer();
      held.release();
      if (worked.kind === 'answer') journal.record('backend.called', { status: 'ok' });
      return worked;
    };
  return { script, called, callIn };
}
