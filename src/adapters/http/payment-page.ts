/** Writes the 402 of a resource as a page for people, with facts of its offer and no script. */

import { type Challenge, needsMandate, type PricedResource } from '../../payments/x402/wire/challenge.ts';
import type { Offers } from '../../payments/x402/wire/offers.ts';
import { escapedHtml, PAGE_CLOSING, pageOpening } from '../../server/http/respond.ts';

interface PageParts {
  readonly resources: ReadonlyMap<string, Pick<PricedResource, 'id' | 'name' | 'authorization'>>;
  readonly offers: Offers;
  /** URLs of the documents that list all that is sold. */
  readonly lists: readonly string[];
}

/** Makes the page of a 402. `address`: its URL in place; absent: the invoke URL. */
export type PaymentPages = (resourceId: string, challenge: Challenge, address?: string) => string;

/** A page that describes the clients that pay. */
const CLIENTS = 'https://github.com/x402-foundation/x402';

/** A page is made when a person asks: few do, and there may be 10,000 resources. */
export function paymentPages({ resources, offers, lists }: PageParts): PaymentPages {
  const listed = lists.map(escapedHtml).map((url) => `<a href="${url}">${url}</a>`);
  return function paymentPage(id, challenge, address) {
    const [resource, offer] = [resources.get(id), offers.get(id)];
    if (resource === undefined || offer === undefined) throw new Error(`no offer for ${id}`);
    const facts = [
      ...challenge.shown.flatMap(({ requirements, amount, currency }) => [
        ['Price', `${amount} ${currency}`],
        ['Network', requirements.network],
        ['Asset', requirements.asset],
        ['Payee', requirements.payTo],
      ]),
      ['Protocol', 'x402, version 2, scheme exact'],
      ['Resource', id],
      ...(needsMandate(resource) ? [['Also needed', 'an AP2 mandate']] : []),
    ].map(([term = '', detail = '']) => `<dt>${escapedHtml(term)}</dt><dd>${escapedHtml(detail)}</dd>`);
    return (
      `${pageOpening(`${resource.name}: payment required`)}<h1>${escapedHtml(resource.name)}</h1>` +
      `<p>${escapedHtml(challenge.message)}</p>` +
      '<p>This address answers once it is paid for. A program pays by itself: this answer has the offer in its ' +
      `PAYMENT-REQUIRED header, and an <a href="${CLIENTS}">x402 client</a> signs it and asks again.</p>` +
      `<dl>${facts.join('')}</dl><pre>${escapedHtml(command(address ?? offer.resourceUrl, address === undefined))}</pre>` +
      `<p>All that is sold here: ${listed.join(', ')}</p>${PAGE_CLOSING}`
    );
  };
}

/** A call of the official client. The text of a URL has no line breaks; its quotes are encoded. */
function command(url: string, invokes: boolean): string {
  const post = `, {\n  method: 'POST',\n  headers: { 'content-type': 'application/json' },\n  body: JSON.stringify(input),\n}`;
  return `const pay = wrapFetchWithPayment(fetch, client);\nawait pay('${url.replaceAll("'", '%27')}'${invokes ? post : ''});`;
}
