/** `acg receipts --verify`: verifies the log of receipts in the store, and the book by the log. */

import { readFileSync } from 'node:fs';
import { loadConfig } from '../config/load.ts';
import { signingKey } from '../crypto/signing-key.ts';
import { ConfigError } from '../problems/problem.ts';
import { lineCodes } from '../receipts/log/series.ts';
import { type LogReport, verifyReceiptLog } from '../receipts/log/verify.ts';
import { NoInputError } from './exit-code.ts';
import { pastMoment } from './option-values.ts';
import { visible } from './output.ts';
import { requireStoreFile, withStore } from './with-store.ts';

/** Findings that are printed; a store that was emptied has as many as it had receipts. */
const MOST_LINES = 1_000;

interface VerifyArgs {
  readonly config?: string;
  /** A file of checkpoints that were taken earlier, one a line. */
  readonly checkpoint?: string;
  readonly since?: string;
  readonly json?: boolean;
}

/**
 * Prints the newest checkpoint on stdout where nothing was found, so that it can be kept, else each
 * finding. `json`: the whole report instead. Exit code 1 with findings.
 * @throws ConfigError, UsageError, NoInputError, UnavailableError, StoreError
 */
export async function verifyReceipts(args: VerifyArgs): Promise<void> {
  const config = loadConfig({ path: args.config, env: process.env });
  const { signing, merchant } = config;
  if (signing === undefined)
    throw new ConfigError([{ path: 'signing', message: 'is missing: without its key there is no log of receipts' }]);
  const key = signingKey(signing.key);
  const trust = { merchant: merchant.id, keys: [key.publicJwk, ...signing.alsoPublish], codes: lineCodes(key) };
  const sinceMs = args.since === undefined ? 0 : pastMoment(args.since, 'since', Date.now());
  const copies = args.checkpoint === undefined ? [] : copiesIn(args.checkpoint);
  requireStoreFile(config);
  await withStore(config, async ({ receiptLog }) => {
    if (receiptLog === undefined) throw new Error('the store keeps no log of receipts');
    const report = await verifyReceiptLog(receiptLog, trust, { copies, sinceMs }).catch((error: unknown) => {
      throw error instanceof RangeError ? new NoInputError(`${args.checkpoint}: ${error.message}`) : error;
    });
    print(report, args);
  });
}

function copiesIn(path: string): readonly string[] {
  const copies = readFileSync(path, 'utf8').split(/\s+/).filter(Boolean);
  if (copies.length === 0) throw new NoInputError(`${path}: has no checkpoint`);
  return copies;
}

function print(report: LogReport, { json }: Pick<VerifyArgs, 'json'>): void {
  const { findings, last, outdated } = report;
  if (findings.length > 0) process.exitCode = 1;
  if (json === true) process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
  else if (findings.length === 0 && last !== undefined) process.stdout.write(`${last.jws}\n`);
  else
    for (const { about, what } of findings.slice(0, MOST_LINES))
      process.stdout.write(`${visible(`${about} ${what}`)}\n`);
  for (const number of outdated)
    process.stderr.write(`checkpoint ${number} of the copy is older than what the log still has\n`);
  process.stderr.write(`${summary(report)}\n`);
}

function summary({ findings, checkpoints, versions, waiting, receipts, dropped, earlier }: LogReport): string {
  const found = findings.length === 0 ? 'nothing was changed' : `${findings.length} findings`;
  return `${found}: ${versions} versions in ${checkpoints} checkpoints, ${waiting} of them not sealed yet; ${receipts} receipts, ${dropped} dropped, ${earlier} from before the log`;
}
