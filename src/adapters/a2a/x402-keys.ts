/** The x402 extension of A2A (a2a-x402 v0.1 and v0.2): its names on the wire. */

/** Both revisions name the same keys; v0.1 is also what the A2A transport of x402 v2 names. */
export const X402_EXTENSIONS: readonly string[] = [
  'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2',
  'https://github.com/google-a2a/a2a-x402/v0.1',
];

/** Members of a Message's metadata. */
export const PAYMENT_STATUS = 'x402.payment.status';
export const PAYMENT_REQUIRED = 'x402.payment.required';
export const PAYMENT_PAYLOAD = 'x402.payment.payload';
export const PAYMENT_RECEIPTS = 'x402.payment.receipts';
export const PAYMENT_ERROR = 'x402.payment.error';

/** The header that activates extensions (A2A 1.0, section 3.6.3), and the name it had before. */
export const EXTENSIONS_HEADER = 'a2a-extensions';
export const OLD_EXTENSIONS_HEADER = 'x-a2a-extensions';

const NONE: readonly string[] = [];

/** The served extensions among those that a request activates. Headers as Node joined them. */
export function activated(...headers: readonly (string | readonly string[] | undefined)[]): readonly string[] {
  // As most requests do.
  if (headers.every((header) => header === undefined)) return NONE;
  const wanted = new Set(
    headers
      .flat()
      .flatMap((header) => header?.split(',') ?? [])
      .map((uri) => uri.trim()),
  );
  return X402_EXTENSIONS.filter((uri) => wanted.has(uri));
}
