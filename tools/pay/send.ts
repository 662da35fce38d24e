/** Sends one payment until it has an answer: the same proof each time moves no money twice. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Channel, Reply, SignedPayment } from './channel.ts';

/** Between two tries where no answer came, milliseconds. */
const LOST_WAIT_MS = 1_000;

/** The last answer, if one came; `isOpen`: the same call may still come to something. */
interface Sent {
  readonly reply: Reply | undefined;
  readonly why: string;
  readonly isOpen: boolean;
}

/**
 * Repeats the call where its answer was lost or says that the same call may come to something.
 * `patienceMs`: from the first to the last time that the payment is sent.
 */
export async function sendUntilAnswered(
  channel: Channel,
  payment: SignedPayment,
  patienceMs: number,
  note: (text: string) => void,
): Promise<Sent> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const { reply, why } = await attempt(channel, payment);
    const wait = reply === undefined ? LOST_WAIT_MS : reply.againInMs;
    if (wait === undefined) return { reply, why, isOpen: false };
    if (Date.now() + wait > deadline) return { reply, why, isOpen: true };
    note(`${why}: the same payment is sent again`);
    await delay(wait);
  }
}

async function attempt(channel: Channel, payment: SignedPayment) {
  try {
    const reply = await channel.send(payment);
    return { reply, why: `the answer was ${reply.status}` };
  } catch (error) {
    return { reply: undefined, why: reasonOf(error) };
  }
}

/** One line; of a failed connection the cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  const why = cause instanceof Error ? cause.message || ('code' in cause ? String(cause.code) : '') : '';
  return `${message}${why === '' ? '' : ` (${why})`}`.replaceAll(/\s*\n\s*/g, ' ');
}
