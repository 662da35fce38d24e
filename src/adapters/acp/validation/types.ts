/** What the rest of the adapter knows of validation: documents, builds, faults. */

import type { Json } from '../../../json/types.ts';

/** Bodies that callers send, by their names in the official schema. */
export const REQUEST_NAMES = [
  'CheckoutSessionCreateRequest',
  'CheckoutSessionUpdateRequest',
  'CheckoutSessionCompleteRequest',
  'CancelSessionRequest',
] as const;

/** Documents of answers. */
const ANSWER_NAMES = ['CheckoutSession', 'CheckoutSessionWithOrder', 'DiscoveryResponse', 'Error'] as const;

/** The documents of the checkout service, by their names in the official schema. */
export const DOCUMENT_NAMES = [...REQUEST_NAMES, ...ANSWER_NAMES] as const;
export type DocumentName = (typeof DOCUMENT_NAMES)[number];

export const BUILDS = ['strict', 'wire', 'wire-quantity'] as const;
/**
 * `strict`: the verdict of the official schema. `wire`: what is accepted of callers, who may send
 * what the RFC tells servers to ignore (acp 11): any `reason_code`, any capability in
 * `interventions.supported`, `extensions: []`. `wire-quantity`: and a `quantity` of request items.
 * What is answered has one verdict in all of them.
 */
export type Build = (typeof BUILDS)[number];

/** The first fault found in a document. */
export interface Fault {
  /**
   * JSONPath of the member, `$.line_items[0].id`, at most 256 characters. A name outside
   * `[A-Za-z_][A-Za-z0-9_]{0,63}` ends it at the parent.
   */
  readonly param: string;
  /** Keyword of JSON Schema. */
  readonly keyword: string;
  /** What would be right, without any value of the document: `is required`, `must be integer`. */
  readonly message: string;
}

/** Undefined: the document is valid. */
export type Validator = (document: Json) => Fault | undefined;
