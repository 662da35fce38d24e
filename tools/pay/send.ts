/** Sends one payment until it has an answer: the same proof each time moves no money twice. */

import { setTimeout as delay } from 'node:timers/promises';
import { UnavailableError } from '../../src/cli/program.ts';
import type { Channel, Reply, SignedPayment } from './channel.ts';
import { plain } from './offer.ts';

/** Between the first two tries, and the longest time between two, milliseconds. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 15_000;

/** The last answer, if one came; `isOpen`: the same call may still come to something. */
interface Sent {
  readonly reply: Reply | undefined;
  readonly why: string;
  readonly isOpen: boolean;
}

/** The first call, which costs nothing. @throws UnavailableError */
export async function ask(channel: Channel, url: string): Promise<Reply> {
  try {
    return await channel.send();
  } catch (error) {
    throw new UnavailableError(`${url} does not answer: ${reasonOf(error)}`, { cause: error });
  }
}

/** An answer that has no terms, in one line. @throws Error for a 402 */
export function unpaidLine(reply: Reply): string {
  if (reply.status === '402') throw new Error('402 without an offer of x402 version 2: nothing that acg pay can pay');
  if (reply.ok) return 'nothing was asked for, so nothing was paid';
  return `not delivered, and nothing was paid: ${answerLine(reply)}`;
}

/** Payment and delivery that an answer tells of. `paid`: the price in words. */
export function outcomeLines(reply: Reply, paid: string): readonly string[] {
  const { settlement } = reply;
  const { transaction, receiptId } = settlement ?? {};
  const lines = [settlement?.success === true ? `paid ${paid}` : 'the answer names no settlement'];
  if (settlement?.success === true && transaction !== undefined) lines.push(`transaction ${transaction}`);
  if (settlement?.success === true && receiptId !== undefined) lines.push(`receipt ${receiptId}`);
  if (!reply.ok) lines.push(`not delivered: ${answerLine(reply)}`);
  return lines;
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
  for (let least = FIRST_WAIT_MS; ; least = Math.min(2 * least, LONGEST_WAIT_MS)) {
    const { reply, why } = await attempt(channel, payment);
    const said = reply === undefined ? 0 : reply.againInMs;
    if (said === undefined) return { reply, why, isOpen: false };
    const wait = Math.max(said, least);
    if (Date.now() + wait > deadline) return { reply, why, isOpen: true };
    note(`${why.replace(/\.$/, '')}: the same payment is sent again in ${Math.ceil(wait / 1_000)} s`);
    await delay(wait);
  }
}

async function attempt(channel: Channel, payment: SignedPayment) {
  try {
    const reply = await channel.send(payment);
    return { reply, why: answerLine(reply) };
  } catch (error) {
    return { reply: undefined, why: reasonOf(error) };
  }
}

/** The status of an answer and what it says, such as `502 The backend answered 500. …`. */
function answerLine({ status, why }: Reply): string {
  return plain(why === undefined ? status : `${status} ${why}`);
}

/** One line; of a failed connection the cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  const why = cause instanceof Error ? cause.message || ('code' in cause ? String(cause.code) : '') : '';
  return `${message}${why === '' ? '' : ` (${why})`}`.replaceAll(/\s*\n\s*/g, ' ');
}
