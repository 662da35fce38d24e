/** Signs the delivery of a paid answer, whose bytes are digested while they pass. */

import { createHash, hash } from 'node:crypto';
import type { BackendAnswer } from '../../backend/exchange.ts';
import type { JsonObject } from '../../json/types.ts';
import type { PurchaseSigner } from '../../payments/delivery/purchase-signer.ts';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import { inputDigest } from '../../payments/settlement/terms.ts';
import type { PaymentResponse } from '../../payments/x402/wire/types.ts';
import type { ReceiptDigests } from '../../receipts/receipt.ts';
import type { RelayOptions } from '../call.ts';

interface SignedDelivery {
  /** For the relay of the answer. */
  readonly annotations: Pick<RelayOptions, 'payment' | 'statement'>;
  /** Undefined until the answer has been read to its end. */
  digests(): ReceiptDigests | undefined;
}

/**
 * Signs the receipt of a payment and prepares the statement of its delivery. Call it before a
 * reader of the answer is attached, in the same turn.
 */
export function signDelivery(
  signer: PurchaseSigner,
  record: PaymentRecord,
  response: PaymentResponse,
  input: JsonObject,
  answer: BackendAnswer,
): SignedDelivery {
  const sumOf = digestAnswer(answer);
  let made: ReceiptDigests | undefined;
  const digests = (): ReceiptDigests | undefined => {
    const sum = sumOf();
    if (sum !== undefined) made ??= { input: inputDigest(input), ...sum };
    return made;
  };
  return {
    annotations: {
      payment: signer.withReceipt(response, record),
      statement: () =>
        signer.statement(record, {
          state: 'delivered',
          digests: digests(),
          status: answer.status,
          deliveredAt: Date.now(),
        }),
    },
    digests,
  };
}

type AnswerDigest = Pick<ReceiptDigests, 'answer' | 'bytes'>;

function digestAnswer(answer: BackendAnswer): () => AnswerDigest | undefined {
  const { whole } = answer;
  if (whole !== undefined) {
    const sum = { answer: hash('sha256', whole, 'hex'), bytes: whole.byteLength };
    return () => sum;
  }
  // Asked for only here: of an answer whose body was asked for nothing is there as a whole.
  const { body } = answer;
  const running = createHash('sha256');
  let bytes = 0;
  let sum: AnswerDigest | undefined;
  body.on('data', (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    running.update(chunk);
  });
  body.once('end', () => {
    sum = { answer: running.digest('hex'), bytes };
  });
  return () => sum;
}
