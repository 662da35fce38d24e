/**
 * The short documents that name what is sold: `/llms.txt` for models, `/.well-known/x402` for
 * catalogues, and the index at `/` for programs. Made once at start.
 */

import { invokeUrl } from '../payments/x402/wire/challenge.ts';
import { describedWithPrice, type ListedResource } from './listing.ts';
import { isSoldOverHttp, MOST_DESCRIBED } from './openapi.ts';
import { PUBLISHED, PUBLISHED_NAMES } from './published.ts';
import type { CatalogueSettings } from './settings.ts';
import { type StaticDocument, staticDocument, staticText } from './static-document.ts';

/** What an agent has to know before it calls. */
const CALLING = [
  'Call a resource with POST and its input as a JSON object. Inputs are described in the list of resources.',
  'A priced resource answers 402 with an x402 version 2 offer, in the body and in the header PAYMENT-REQUIRED.',
  'Sign it and send the same call again with the header PAYMENT-SIGNATURE. Each payment buys one call.',
];

/** A line of the documents: where, what, how much. */
interface Entry {
  readonly url: string;
  readonly name: string;
  readonly text: string;
}

/** What the documents are made from. */
export interface Introduction {
  /** Of the merchant. */
  readonly name: string;
  readonly entries: readonly Entry[];
  readonly links: readonly { readonly url: string; readonly title: string }[];
  /** Resources that are not among the entries. */
  readonly more: number;
}

/** `listed`: in the order of the configuration. */
export function introductionOf(settings: CatalogueSettings, listed: readonly ListedResource[]): Introduction {
  const sold = listed.filter(isSoldOverHttp);
  const entries = sold.slice(0, MOST_DESCRIBED).map((resource) => entryOf(resource, settings));
  return { name: settings.merchant.name, entries, links: linksOf(settings), more: sold.length - entries.length };
}

/** `/.well-known/x402`: what can be asked as it stands there; a template cannot. */
export function x402Document({ entries }: Introduction): StaticDocument {
  return staticDocument({ version: 1, resources: entries.map(({ url }) => url).filter((url) => !url.includes('{')) });
}

/** `/` for a program: where the other documents and the protocols are. */
export function indexDocument(settings: CatalogueSettings): StaticDocument {
  const { name, publicBaseUrl } = settings.merchant;
  return staticDocument({
    name,
    resources: `${publicBaseUrl}/api/resources`,
    discovery: `${publicBaseUrl}/.well-known/agent-commerce`,
    ...Object.fromEntries([...mounted(settings), ...documents(settings)]),
  });
}

/** The address where there is one: people and catalogues can ask it as it is. */
function entryOf(resource: ListedResource, { merchant }: CatalogueSettings): Entry {
  const invoke = invokeUrl(merchant.publicBaseUrl, resource.id);
  const url = resource.exposedVia.includes('http') ? invoke : (resource.address ?? invoke);
  return { url, name: resource.name, text: describedWithPrice(resource) };
}

function linksOf(settings: CatalogueSettings): Introduction['links'] {
  const { publicBaseUrl } = settings.merchant;
  return [
    { url: `${publicBaseUrl}/api/resources`, title: 'All resources with their input schemas' },
    { url: `${publicBaseUrl}/.well-known/agent-commerce`, title: 'Protocols, networks and capabilities' },
    ...mounted(settings).map(([name, url]) => ({ url, title: `The same over ${name.toUpperCase()}` })),
    ...documents(settings)
      .filter(([name]) => name === 'openapi')
      .map(([, url]) => ({ url, title: 'OpenAPI 3.1' })),
  ];
}

function mounted({ merchant, protocols }: CatalogueSettings): readonly (readonly [string, string])[] {
  return (['mcp', 'a2a'] as const)
    .filter((name) => protocols[name].enabled)
    .map((name) => [name, `${merchant.publicBaseUrl}${protocols[name].mountPath}`]);
}

function documents({ merchant, publish }: CatalogueSettings): readonly (readonly [string, string])[] {
  return PUBLISHED_NAMES.filter((name) => name !== 'index' && publish.has(name)).map((name) => [
    name,
    `${merchant.publicBaseUrl}${PUBLISHED[name]}`,
  ]);
}

/** `/llms.txt`, as https://llmstxt.org has it: a title, a summary, text, and lists of links. */
export function llmsDocument({ name, entries, links, more }: Introduction): StaticDocument {
  const lines = [
    `# ${oneLine(name)}`,
    '',
    `> ${entries.length + more} operations that programs call over HTTP, free or paid for each call with x402.`,
    '',
    ...CALLING,
    '',
    '## Resources',
    '',
    ...entries.map((entry) => `- [${oneLine(entry.name)}](${entry.url}): ${oneLine(entry.text)}`),
    ...(more > 0 ? [`- ${more} more in the list of all resources`] : []),
    '',
    '## Links',
    '',
    ...links.map(({ url, title }) => `- [${title}](${url})`),
    '',
  ];
  return staticText(lines.join('\n'));
}

/** Texts of the configuration may have line ends, and brackets that would end a link. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/[[\]]/g, '\\$&').trim();
}
