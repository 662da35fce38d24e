/**
 * The extension `bazaar` of x402, from which facilitators make their catalogues: its form for each
 * way that a resource is sold by, and which of them goes along with a payment.
 */

import { isObject, type Json } from '../../../json/types.ts';
import type { Extension, PaymentPayload, ResourceInfo } from './types.ts';

/** The name of the extension. */
export const BAZAAR = 'bazaar';

/** How one resource is called; undefined where it is not sold that way. */
export interface BazaarForms {
  /** What is said of it whatever its URL. */
  readonly about: Omit<ResourceInfo, 'url'>;
  /** By its invoke URL. */
  readonly invoke: Extension | undefined;
  /** At its own address. */
  readonly inPlace: Extension | undefined;
  /** As a tool of the MCP endpoint at this URL. */
  readonly tool: { readonly extension: Extension; readonly url: string } | undefined;
}

/** The form of a tool, as far as the kept echo of a client has it. */
export const TOOL_ECHO = { info: { input: { type: 'mcp' } } } as const;

/** A form in fewer bytes: catalogues take `info` from it, which any object satisfies. */
export function withOpenSchema(form: Extension): Extension {
  return { ...form, schema: { type: 'object' } };
}

/** Whether an echoed extension is the form of a tool. */
export function isOfTool(echoed: Json | undefined): boolean {
  const input = isObject(echoed) && isObject(echoed['info']) ? echoed['info']['input'] : undefined;
  return isObject(input) && input['type'] === TOOL_ECHO.info.input.type;
}

/** What a facilitator catalogues when it processes a payment. */
export interface BazaarEntry {
  readonly resource: ResourceInfo;
  readonly extension: Extension;
}

/** The entry that goes along with a payment; undefined: none. */
export type EntryOf = (payload: PaymentPayload) => BazaarEntry | undefined;

/**
 * Finds entries by the URL that a payment names. Their content is ours: a client could only echo
 * it, and clients that echo nothing are catalogued too. The echo says alone which form was shown
 * where one URL has two.
 */
export function entriesOf(offers: Iterable<OfferForms>): EntryOf {
  const listed = [...offers].filter((offer): offer is Required<OfferForms> => offer.bazaar !== undefined);
  const byInvoke = new Map(listed.map(({ resourceUrl, bazaar }) => [resourceUrl, bazaar]));
  return ({ resource, extensions }) => {
    if (resource === undefined) return undefined;
    const { url } = resource;
    const invoked = byInvoke.get(url);
    if (invoked === undefined) {
      const sold = listed.find(({ inPlace }) => inPlace?.test(url))?.bazaar;
      return sold && entry(sold, url, sold.inPlace);
    }
    const { invoke, tool } = invoked;
    return tool !== undefined && (invoke === undefined || isOfTool(extensions?.[BAZAAR] as Json | undefined))
      ? entry(invoked, tool.url, tool.extension)
      : entry(invoked, url, invoke);
  };
}

/** What of an offer decides its entry. */
interface OfferForms {
  readonly resourceUrl: string;
  readonly inPlace?: RegExp | undefined;
  readonly bazaar?: BazaarForms | undefined;
}

function entry({ about }: BazaarForms, url: string, extension: Extension | undefined): BazaarEntry | undefined {
  return extension && { resource: { url, ...about }, extension };
}
