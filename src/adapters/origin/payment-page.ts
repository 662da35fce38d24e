/** The page that a browser gets for a 402: what the address costs, and what pays for it. */

import type { Offer } from '../../payments/x402/wire/offers.ts';
import type { Resource } from '../../resources/resource.ts';
import { escapedHtml, PAGE_CLOSING, pageOpening } from '../../server/http/page.ts';

/** Where the clients that pay are described. */
const CLIENTS = 'https://github.com/x402-foundation/x402';

/** Makes the page of one resource for the URL that was asked for. */
export type PaymentPage = (url: string) => string;

/** Everything but the URL is written at start. */
export function paymentPage(
  { id, name, authorization }: Pick<Resource, 'id' | 'name' | 'authorization'>,
  { requirements, amount, currency }: Pick<Offer, 'requirements' | 'amount' | 'currency'>,
  publicBaseUrl: string,
): PaymentPage {
  const { network, asset, payTo } = requirements;
  const facts = [
    ['Price', `${amount} ${currency}`],
    ['Network', network],
    ['Asset', asset],
    ['Payee', payTo],
    ['Protocol', 'x402, version 2, scheme exact'],
    ['Resource', id],
    ...(authorization.includes('ap2') ? [['Also needed', 'an AP2 mandate']] : []),
  ].map(([term = '', detail = '']) => `<dt>${escapedHtml(term)}</dt><dd>${escapedHtml(detail)}</dd>`);
  const head =
    `${pageOpening(`${name}: payment required`)}<h1>${escapedHtml(name)}</h1>` +
    '<p>This address answers once it is paid for. A program pays by itself: this answer has the offer in its ' +
    `PAYMENT-REQUIRED header, and an <a href="${CLIENTS}">x402 client</a> signs it and asks again.</p>` +
    `<dl>${facts.join('')}</dl><pre>`;
  const listing = escapedHtml(`${publicBaseUrl}/api/resources`);
  const tail = `</pre><p>All that is sold here: <a href="${listing}">${listing}</a></p>${PAGE_CLOSING}`;
  return (url) => head + escapedHtml(command(url)) + tail;
}

/** As the official client is called; the text of a URL has no quotes and no line breaks. */
function command(url: string): string {
  return `const pay = wrapFetchWithPayment(fetch, client);\nawait pay('${url.replaceAll("'", '%27')}');`;
}
