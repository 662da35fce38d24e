import { assertKeeping, LedgerCorruption } from '../../payments/ledger/invariants.ts';
import type { Keeping, KeptAnswer } from '../../payments/ledger/ledger.ts';

/** Between the head, which is JSON of one line, and the body as it came. */
const SEPARATOR = Buffer.from('\n');

/** What write.lua is told of an answer to keep, and its bytes beside the plan. @throws RangeError a bug of the caller */
export function keptForm(keeping: Keeping): { readonly keepMs: number; readonly bytes: Buffer } {
  assertKeeping(keeping);
  const { answer, forMs } = keeping;
  const { status, headers, body } = answer;
  return { keepMs: forMs, bytes: Buffer.concat([Buffer.from(JSON.stringify({ status, headers })), SEPARATOR, body]) };
}

/** An answer as it was kept, its body byte for byte. @throws LedgerCorruption */
export function keptFrom(bytes: Buffer): KeptAnswer {
  const end = bytes.indexOf(SEPARATOR);
  if (end < 0) throw new LedgerCorruption('the kept answer has no head');
  const { status, headers } = headOf(bytes.toString('utf8', 0, end));
  return { status, headers, body: new Uint8Array(bytes.subarray(end + SEPARATOR.length)) };
}

/** @throws LedgerCorruption */
function headOf(json: string): Pick<KeptAnswer, 'status' | 'headers'> {
  try {
    return JSON.parse(json) as Pick<KeptAnswer, 'status' | 'headers'>;
  } catch {
    throw new LedgerCorruption('the head of the kept answer is no JSON');
  }
}
