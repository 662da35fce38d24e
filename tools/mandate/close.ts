/** `acg mandate close` and `direct`: mandates for the checkout of one challenge, as headers. */

import { UsageError } from '../../src/cli/program.ts';
import { keccak256 } from '../../src/crypto/hash.ts';
import { type ReadChallenge, readChallenge } from './challenge.ts';
import { type Content, closedCheckout, closedPayment } from './maker/contents.ts';
import { hopDraft, rootDraft } from './maker/drafts.ts';
import { chainOf, envelopeOf, headerOf, signDraft } from './maker/tokens.ts';
import { readOpenFile } from './open.ts';
import type { Options } from './options.ts';
import { readKeys } from './test-keys.ts';

/** Backdated, so that no verifier's clock takes it for a mandate from the future. */
const BACKDATED_SECONDS = 2;
/** How long a mandate for one purchase holds, seconds. */
const DIRECT_SECONDS = 300;

/** A header value, and notes for its user. */
export interface Closed {
  readonly header: string;
  readonly notes: readonly string[];
}

/** The agent closes its open mandates. @throws UsageError, Error */
export function close(options: Options, nowSeconds: number): Closed {
  const { agent } = readKeys(options.need('keys', 'the folder that mandate keys made'));
  const open = readOpenFile(options.need('open', 'the file that mandate open wrote'));
  const challenge = readChallenge(options.need('challenge', 'a 402 or 403 body, - for standard input'), nowSeconds);
  const { audience: aud, nonce, checkoutJwt, paymentMandate } = challenge;
  const closing = (previous: string, content: Content): string => {
    const draft = hopDraft(content, { previous, aud, nonce, iat: nowSeconds - BACKDATED_SECONDS }, agent);
    return chainOf([previous, signDraft(draft, agent)]);
  };
  const checkout = closing(open.checkout, closedCheckout(checkoutJwt));
  if (open.payment === undefined && paymentMandate === 'required')
    throw new Error(
      'this merchant demands a payment mandate, and the open file has none: make it with mandate open --max AMOUNT',
    );
  const pays = open.payment !== undefined && paymentMandate !== 'none';
  if (!pays && options.get('payer') !== undefined)
    throw new UsageError(`--payer is for a payment mandate, and ${whyNone(challenge)}`);
  const payment = pays ? closing(open.payment, closedPayment(paymentOf(options, challenge))) : undefined;
  return finished(challenge, checkout, payment);
}

/** The provider signs this one purchase, with a payer its payment too. @throws UsageError, Error */
export function direct(options: Options, nowSeconds: number): Closed {
  const { issuer, provider } = readKeys(options.need('keys', 'the folder that mandate keys made'));
  const challenge = readChallenge(options.need('challenge', 'a 402 or 403 body, - for standard input'), nowSeconds);
  const terms = { iss: issuer, iat: nowSeconds - BACKDATED_SECONDS, exp: nowSeconds + DIRECT_SECONDS };
  const signed = (content: Content): string => signDraft(rootDraft(content, terms, provider), provider);
  const { paymentMandate, checkoutJwt } = challenge;
  const payer = options.get('payer');
  if (payer !== undefined && paymentMandate === 'none')
    throw new UsageError(`--payer is for a payment mandate, and ${whyNone(challenge)}`);
  const pays = payer !== undefined || paymentMandate === 'required';
  const payment = pays ? signed(closedPayment(paymentOf(options, challenge))) : undefined;
  return finished(challenge, signed(closedCheckout(checkoutJwt)), payment);
}

function whyNone({ paymentMandate }: ReadChallenge): string {
  return paymentMandate === 'none'
    ? 'this resource costs nothing'
    : 'the open file has none (mandate open --max makes one)';
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** @throws UsageError without a payer */
function paymentOf(options: Options, challenge: ReadChallenge) {
  const { checkoutJwt, merchant, total, currency, network } = challenge;
  if (network === undefined) throw new Error('the checkout names no network to pay on');
  const text = options.need('payer', 'the address that pays, which the payment mandate names');
  const payer = text.startsWith(`${network}:`) ? text.slice(network.length + 1) : text;
  if (!ADDRESS.test(payer))
    throw new UsageError(`--payer must be an address (0x and 40 digits), or that with ${network}: before it`);
  return { checkoutJwt, payee: merchant, amount: total, currency, network, payer };
}

/** @throws Error when it is longer than the challenge allows */
function finished(challenge: ReadChallenge, checkout: string, payment: string | undefined): Closed {
  const header = headerOf(envelopeOf(checkout, payment));
  const { maxEnvelopeBytes, bindPaymentNonce } = challenge;
  if (maxEnvelopeBytes !== undefined && header.length > maxEnvelopeBytes)
    throw new Error(`the header has ${header.length} bytes, and this merchant reads at most ${maxEnvelopeBytes}`);
  const notes = [`${header.length} bytes, good for one call to ${challenge.audience}`];
  if (bindPaymentNonce && payment !== undefined)
    notes.push(
      `the nonce of the payment must be 0x${Buffer.from(keccak256(Buffer.from(payment, 'utf8'))).toString('hex')}`,
    );
  return { header, notes };
}
