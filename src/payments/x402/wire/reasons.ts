/** The reasons of refused payments (contract 1.3), and the translation of facilitators' reasons. */

const TOKEN = /^[a-z0-9_.-]{1,64}$/;
/** Replaces a reason that is no machine token. */
const UNKNOWN_REASON = 'payment_refused';
/** The authorization was used before, maybe to pay this merchant. */
export const NONCE_ALREADY_USED = 'invalid_exact_evm_nonce_already_used';
/** The authorization can pay no more: its end is past. */
export const EXPIRED = 'invalid_exact_evm_payload_authorization_valid_before';

/** The facilitator broadcast and has not seen the outcome: no refusal, although it comes as one. */
export const SETTLEMENT_PENDING = 'settlement_pending';

/** Words of the published packages and older texts, and the token of the specification for each. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['invalid_exact_evm_signature', 'invalid_exact_evm_payload_signature'],
  ['invalid_exact_evm_failed_to_parse_signature', 'invalid_exact_evm_payload_signature'],
  ['invalid_exact_evm_recipient_mismatch', 'invalid_exact_evm_payload_recipient_mismatch'],
  ['invalid_exact_evm_authorization_value', 'invalid_exact_evm_payload_authorization_value_mismatch'],
  ['invalid_exact_evm_payload_authorization_value', 'invalid_exact_evm_payload_authorization_value_mismatch'],
  ['invalid_exact_evm_network_mismatch', 'invalid_network'],
  ['invalid_exact_evm_scheme', 'invalid_scheme'],
  ['unsupported_scheme', 'invalid_scheme'],
  ['invalid_exact_evm_insufficient_balance', 'insufficient_funds'],
  ['invalid_exact_evm_payload_nonce_already_used', NONCE_ALREADY_USED],
]);

/** Reasons that a facilitator finds before it broadcasts. Others may follow a broadcast. */
const BEFORE_BROADCAST: ReadonlySet<string> = new Set([
  'asset_not_deployed_contract',
  'eip6492_factory_not_allowed',
  'insufficient_funds',
  'invalid_exact_evm_eip3009_not_supported',
  'invalid_exact_evm_missing_eip712_domain',
  'invalid_exact_evm_payload_authorization_valid_after',
  EXPIRED,
  'invalid_exact_evm_payload_authorization_value_mismatch',
  'invalid_exact_evm_payload_recipient_mismatch',
  'invalid_exact_evm_payload_signature',
  'invalid_exact_evm_token_name_mismatch',
  'invalid_exact_evm_token_version_mismatch',
  'invalid_exact_evm_transaction_simulation_failed',
  'invalid_network',
  'invalid_payload',
  'invalid_payment_requirements',
  'invalid_scheme',
  'invalid_x402_version',
]);

/**
 * A facilitator's reason as a token of contract 1.3: known words translated, foreign tokens passed
 * on, anything else `payment_refused`.
 */
export function translatedReason(reason: unknown): string {
  if (typeof reason !== 'string' || !TOKEN.test(reason)) return UNKNOWN_REASON;
  return SYNONYMS.get(reason) ?? reason;
}

/** Whether a settlement refused for this translated reason sent nothing. */
export function refusedBeforeBroadcast(reason: string): boolean {
  return BEFORE_BROADCAST.has(reason);
}

/** Whether this translated reason states that the authorization was used before. */
export function isNonceSpent(reason: string): boolean {
  return reason === NONCE_ALREADY_USED;
}
