import { closed, either, oneOf, text } from './kinds.ts';

export const contentType = oneOf('plain', 'markdown');

export const DISCOUNT_CODES = [
  ...['discount_code_expired', 'discount_code_invalid', 'discount_code_already_applied'],
  ...['discount_code_combination_disallowed', 'discount_code_minimum_not_met', 'discount_code_user_not_logged_in'],
  ...['discount_code_user_ineligible', 'discount_code_usage_limit_reached'],
] as const;

const content = {
  'content_type*': contentType,
  'content*': text,
  severity: oneOf('info', 'low', 'medium', 'high', 'critical'),
  resolution: oneOf('recoverable', 'requires_buyer_input', 'requires_buyer_review'),
  param: text,
};
/** Only the first has no code. */
export const message = either(
  closed({ 'type*': oneOf('info'), ...content }),
  closed({
    'type*': oneOf('warning'),
    'code*': oneOf(
      ...(['low_stock', 'high_demand', 'shipping_delay', 'price_change', 'expiring_promotion'] as const),
      ...['limited_availability', ...DISCOUNT_CODES],
    ),
    ...content,
  }),
  closed({
    'type*': oneOf('error'),
    'code*': oneOf(
      ...(['missing', 'invalid', 'out_of_stock', 'payment_declined', 'requires_sign_in', 'requires_3ds'] as const),
      ...['low_stock', 'quantity_exceeded', 'coupon_invalid', 'coupon_expired', 'minimum_not_met', 'maximum_exceeded'],
      ...['region_restricted', 'age_verification_required', 'approval_required', 'unsupported', 'not_found'],
      ...['conflict', 'rate_limited', 'expired', 'intervention_required'],
    ),
    ...content,
  }),
);
