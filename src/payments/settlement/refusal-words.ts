/** What a buyer can do about a refusal, by the reason of contract 1.3. A reason that is not here says enough, or is a facilitator's. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['invalid_payload', 'it must be the JSON of one x402 v2 PaymentPayload, as base64 where text is carried'],
  ['invalid_x402_version', 'x402Version must be 2'],
  ['invalid_scheme', 'scheme must be exact'],
  ['invalid_network', 'it is for another network than the one in accepts'],
  ['invalid_payment_requirements', 'accepted must be the entry of accepts that is offered now, unchanged'],
  ['invalid_exact_evm_payload_recipient_mismatch', 'authorization.to must be the payTo of the offer'],
  ['invalid_exact_evm_payload_authorization_value_mismatch', 'authorization.value must be the amount of the offer'],
  ['invalid_exact_evm_payload_authorization_valid_after', 'validAfter is still to come'],
  ['invalid_exact_evm_payload_authorization_valid_before', 'validBefore has passed, or is too far away'],
  ['invalid_exact_evm_payload_signature', 'the signature is not that of the payer for this authorization'],
  [
    'contract_signature_not_supported',
    'signatures of contract wallets cannot be verified here; pay from an account that signs with a key of its own',
  ],
  [
    'eip6492_factory_not_allowed',
    'its wallet is not deployed, and is not deployed for it here; deploy it first, or pay from another account',
  ],
  ['invalid_exact_evm_nonce_already_used', 'its nonce is used already; sign with a new one'],
  ['insufficient_funds', 'the payer does not hold the amount'],
]);

/** One sentence for the buyer: the token, and what would be right. */
export function refusalSentence(reason: string): string {
  const words = WORDS.get(reason);
  return `The payment proof was refused: ${reason}${words === undefined ? '' : ` (${words})`}.`;
}
