import { closed, currencyCode, date, listOf, oneOf, text, uri } from './kinds.ts';

/** The Error document (acp 6). */
export const error = closed({
  'type*': oneOf('invalid_request', 'processing_error', 'service_unavailable'),
  'code*': text,
  'message*': text,
  param: text,
  supported_versions: listOf(date),
});

/** The discovery document (acp 7). */
export const discovery = closed({
  'protocol*': closed({
    'name*': oneOf('acp'),
    'version*': date,
    'supported_versions*': listOf(date, { unique: true }),
    documentation_url: uri,
  }),
  'api_base_url*': uri,
  'transports*': listOf(oneOf('rest', 'mcp'), { unique: true }),
  'capabilities*': closed({
    'services*': listOf(oneOf('checkout', 'orders', 'delegate_payment', 'carts'), { unique: true }),
    extensions: listOf(closed({ 'name*': text, spec: uri, schema: uri })),
    intervention_types: listOf(oneOf('3ds', 'biometric', 'address_verification'), { unique: true }),
    supported_currencies: listOf(currencyCode, { unique: true }),
    supported_locales: listOf(text, { unique: true }),
  }),
});
