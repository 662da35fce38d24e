/**
 * Measures the log of receipts at scale: `node verification/receipts/main.ts [VERSIONS] [ENGINE]`.
 * Fills a book whose receipts have four versions each, verifies its log, changes one receipt, and
 * verifies again.
 */

import { type Engine, measured } from './scale.ts';

const [versions = '1000000', only] = process.argv.slice(2);
const engines: readonly Engine[] = ['redis', 'sqlite'];
for (const engine of engines.filter((one) => only === undefined || one === only)) {
  const { verifyMs, sealMs, writeMs, findings, residentMb, bytes, ...counts } = await measured(
    engine,
    Number(versions),
  );
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  console.log(
    `${engine}: ${JSON.stringify(counts)}, written in ${seconds(writeMs)}, sealed in ${seconds(sealMs)}, ` +
      `verified in ${seconds(verifyMs)}, ${residentMb} MB resident, ${bytes} bytes a version; then found: ${findings.join('; ')}`,
  );
}
