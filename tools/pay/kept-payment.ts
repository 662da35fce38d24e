/** Signed payments in files, so that one whose answer was lost can be sent again later. */

import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { UsageError } from '../../src/cli/program.ts';
import { jsonOf, members, type SignedPayment } from './channel.ts';

/**
 * The payment in a file; undefined where there is no such file.
 * @throws UsageError for a file of something else
 */
export function keptPayment(file: string): SignedPayment | undefined {
  if (!existsSync(file)) return undefined;
  const { proof, idempotencyKey } = members(jsonOf(readFileSync(file, 'utf8')));
  if (typeof proof === 'string' && typeof idempotencyKey === 'string') return { proof, idempotencyKey };
  throw new UsageError(`${file} holds no payment of acg pay; name another file with --proof`);
}

/**
 * For its owner alone: with it the purchase can be collected. The file is whole, or there is none.
 * @throws Error where there is one already
 */
export function keepPayment(file: string, payment: SignedPayment): void {
  const whole = `${file}.${payment.idempotencyKey}`;
  try {
    writeFileSync(whole, `${JSON.stringify(payment)}\n`, { mode: 0o600, flag: 'wx' });
    linkSync(whole, file);
  } finally {
    rmSync(whole, { force: true });
  }
}

/** Keeps a payment in the working directory. @returns the name of the file */
export function saveLost(payment: SignedPayment): string {
  const file = `acg-payment-${payment.idempotencyKey.slice(0, 8)}.json`;
  keepPayment(file, payment);
  return file;
}
