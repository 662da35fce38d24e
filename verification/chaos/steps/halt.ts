/**
 * Loaded before a gateway (`node --import`): ends the process with SIGKILL exactly
 * at the step HALT_AT of the first payment or keyed checkout call that reaches it, in the
 * same turn, once. Before that it writes a line to the log: `{ "halt": <step> }`.
 */

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { writeSync } from 'node:fs';
import { CHECKOUT_CHANNEL } from '../../../src/checkouts/attempts.ts';
import { PAYMENT_CHANNEL } from '../../../src/payments/settlement/attempt.ts';

const step = process.env['HALT_AT'];
const STDOUT = 1;

/** Steps of payments and of checkouts have different names. */
const CHANNELS = [PAYMENT_CHANNEL, CHECKOUT_CHANNEL];

function halt(message: unknown): void {
  if ((message as { readonly step: unknown }).step !== step) return;
  for (const name of CHANNELS) unsubscribe(name, halt);
  writeSync(STDOUT, `${JSON.stringify({ halt: step })}\n`);
  process.kill(process.pid, 'SIGKILL');
}

for (const name of CHANNELS) subscribe(name, halt);
