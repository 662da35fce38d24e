import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { writeSync } from 'node:fs';
import { PAYMENT_CHANNEL } from '../../../src/payments/steps.ts';

/**
 * Loaded before a gateway (`node --import`): sends the process HALT_SIGNAL (SIGKILL or SIGSTOP) exactly at the step HALT_AT of the
 * first payment that reaches it, in the same turn, once. Before that it says so in a line of the log: `{ "halt": <step> }`.
 */
const { HALT_AT: step, HALT_SIGNAL: signal } = process.env;
const STDOUT = 1;

subscribe(PAYMENT_CHANNEL, function halt(message) {
  if ((message as { readonly step: unknown }).step !== step) return;
  unsubscribe(PAYMENT_CHANNEL, halt);
  writeSync(STDOUT, `${JSON.stringify({ halt: step })}\n`);
  process.kill(process.pid, signal);
});
