/** `node verification/import/main.ts [NAME]`: every operation of each document, in minutes. */

import { DOCUMENTS, readDocument } from './documents.ts';
import { importDocument, runDocument } from './run.ts';

const GOAL = 0.95;
const [wanted] = process.argv.slice(2);

process.stdout.write('document        operations  without --ignore-security  imported  answered  share\n');
for (const { name, secured, ...place } of DOCUMENTS.filter((one) => wanted === undefined || one.name === wanted)) {
  const document = await readDocument({ name, secured, ...place });
  const open = Object.keys(importDocument(document, false).resources).length;
  const outcome = await runDocument(document, { ignoreSecurity: secured, most: Number.POSITIVE_INFINITY });
  const answered = outcome.called - outcome.failures.length;
  const share = answered / outcome.operations;
  const columns = [outcome.operations, open, outcome.imported, answered].map(String);
  process.stdout.write(
    `${name.padEnd(15)}${(columns[0] ?? '').padStart(11)}${(columns[1] ?? '').padStart(27)}${(columns[2] ?? '').padStart(10)}${(columns[3] ?? '').padStart(10)}  ${(100 * share).toFixed(1)} %\n`,
  );
  for (const { operation, reason } of outcome.skipped) process.stdout.write(`  skipped ${operation}: it ${reason}\n`);
  for (const { resource, why } of outcome.failures) process.stdout.write(`  FAILED ${resource}: ${why}\n`);
  if (share < GOAL) process.exitCode = 1;
}
