/** Pays for a tool as the MCP transport of x402 describes it. */

import assert from 'node:assert/strict';
import { isPaymentRequiredV2 } from '@x402/core/schemas';
import type { PaymentPayload, PaymentRequired, SettleResponse } from '@x402/core/types';
import type { x402Client } from '@x402/fetch';
import type { McpClient, ToolAnswer, ToolCall } from './mcp-clients.ts';

/** Where the published MCP transport of x402 puts a proof and a receipt. */
export const PAYMENT = 'x402/payment';
export const PAYMENT_RESPONSE = 'x402/payment-response';

/** A purchase with its terms, proof and answer. */
export interface McpPurchase {
  readonly terms: PaymentRequired;
  readonly proof: PaymentPayload;
  readonly answer: ToolAnswer;
}

/**
 * The terms of a challenge, found and checked as the MCP transport of x402 v2 asks of clients:
 * structured content, and the same object as the text of the first block. @throws AssertionError
 * when the answer is no challenge
 */
export function termsOf(answer: ToolAnswer): PaymentRequired {
  const { isError, structuredContent, content } = answer;
  assert.equal(isError, true, JSON.stringify(answer));
  assert.ok(isPaymentRequiredV2(structuredContent), JSON.stringify(structuredContent));
  assert.deepEqual(JSON.parse(content[0]?.text ?? ''), structuredContent);
  return structuredContent as PaymentRequired;
}

/** The receipt of a paid answer; undefined when there is none. */
export function receiptOf({ _meta }: ToolAnswer): SettleResponse | undefined {
  return _meta?.[PAYMENT_RESPONSE] as SettleResponse | undefined;
}

/** Puts a proof where the published transport wants it. */
export function withProof(call: ToolCall, proof: unknown): ToolCall {
  return { ...call, _meta: { ...call._meta, [PAYMENT]: proof } };
}

/**
 * Calls a tool, signs what it asks for and calls it again; `carry` puts the proof into the second
 * call.
 */
export async function buyTool(
  client: McpClient,
  wallet: x402Client,
  call: ToolCall,
  carry: (call: ToolCall, proof: PaymentPayload) => ToolCall = withProof,
): Promise<McpPurchase> {
  const terms = termsOf(await client.callTool(call));
  const proof = await wallet.createPaymentPayload(terms);
  return { terms, proof, answer: await client.callTool(carry(call, proof)) };
}
