/** The page that a browser gets for a 402: what the address costs, and what pays for it. */

import { createHash } from 'node:crypto';
import type { Offer } from '../../payments/x402/wire/offers.ts';
import type { Resource } from '../../resources/resource.ts';

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:3em auto;padding:0 1em}' +
  'dt{font-weight:bold}dd{margin:0 0 .5em;overflow-wrap:anywhere}pre{overflow:auto;padding:1em;background:#eee}';
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** No script, no form, no frame, nothing from elsewhere; the one style is named by its digest. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const;

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
  ].map(([term = '', detail = '']) => `<dt>${escaped(term)}</dt><dd>${escaped(detail)}</dd>`);
  const head =
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escaped(name)}: payment required</title>` +
    `<style>${STYLE}</style></head><body><h1>${escaped(name)}</h1>` +
    '<p>This address answers once it is paid for. A program pays by itself: this answer has the offer in its ' +
    `PAYMENT-REQUIRED header, and an <a href="${CLIENTS}">x402 client</a> signs it and asks again.</p>` +
    `<dl>${facts.join('')}</dl><pre>`;
  const listing = escaped(`${publicBaseUrl}/api/resources`);
  const tail = `</pre><p>All that is sold here: <a href="${listing}">${listing}</a></p></body></html>\n`;
  return (url) => head + escaped(command(url)) + tail;
}

/** As the official client is called; the text of a URL has no quotes and no line breaks. */
function command(url: string): string {
  return `const pay = wrapFetchWithPayment(fetch, client);\nawait pay('${url.replaceAll("'", '%27')}');`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
