/** Alterations of a signed payment, each of which is refused with a 402. */

import { ABSENT, MUTATIONS, type Mutation, OTHER } from '../../../spec/e2e/proofs.ts';

const VALUE = 'payload.authorization.value';
const SPELLED_WRONG: readonly (readonly [what: string, value: unknown])[] = [
  ['zero', '0'],
  ['negative', '-10000'],
  ['2^256', String(2n ** 256n)],
  ['2^256 more', String(2n ** 256n + 10_000n)],
  ['a fraction', '10000.0'],
  ['an exponent', '1e4'],
  ['a plus sign', '+10000'],
  ['a leading zero', '010000'],
  ['hexadecimal', '0x2710'],
  ['digits of another script', '１００００'],
  ['a space', ' 10000'],
  ['a separator', '10_000'],
  ['a list', ['10000']],
  ['nothing', ''],
  ['null', null],
  ['2,000 digits', '9'.repeat(2_000)],
];
const row = (field: string, at: string, to: unknown): Pick<Mutation, 'field' | 'at' | 'to'> => ({ field, at, to });

/** Every way to differ from the offer; each is refused with a 402 and no money moves. */
export const ALTERATIONS: readonly Pick<Mutation, 'field' | 'at' | 'to'>[] = [
  ...MUTATIONS,
  ...SPELLED_WRONG.map(([what, value]) => row(`authorization.value: ${what}`, VALUE, value)),
  // A leading zero is the same integer: echoed amounts are compared as numbers, the signed value as
  // on the chain.
  ...SPELLED_WRONG.filter(([what]) => what !== 'a leading zero').map(([what, value]) =>
    row(`accepted.amount: ${what}`, 'accepted.amount', value),
  ),
  row('x402Version as text', 'x402Version', '2'),
  row('x402Version 3', 'x402Version', 3),
  row('no accepted', 'accepted', ABSENT),
  row('accepted as a list', 'accepted', []),
  row('another family of networks', 'accepted.network', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'),
  row('a network name of version 1', 'accepted.network', 'base-sepolia'),
  row('a recipient of zeros', 'payload.authorization.to', `0x${'0'.repeat(40)}`),
  row('the payer as recipient', 'payload.authorization.to', OTHER),
  row('a nonce of 31 bytes', 'payload.authorization.nonce', `0x${'34'.repeat(31)}`),
  row('a nonce of 33 bytes', 'payload.authorization.nonce', `0x${'34'.repeat(33)}`),
  row('a signature of 64 bytes', 'payload.signature', `0x${'11'.repeat(64)}`),
  row('an empty signature', 'payload.signature', '0x'),
  row('a signature of 8 KiB', 'payload.signature', `0x${'11'.repeat(3_000)}`),
];
