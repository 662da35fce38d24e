/** The documents by which catalogues and people find what is sold, beside the list of resources. */

/** Their paths, by the names that `publish` of the configuration has for them. */
export const PUBLISHED = {
  index: '/',
  openapi: '/openapi.json',
  llms: '/llms.txt',
  x402: '/.well-known/x402',
} as const;

export type PublishedName = keyof typeof PUBLISHED;

export const PUBLISHED_NAMES = Object.keys(PUBLISHED) as readonly PublishedName[];

/** Where A2A clients look for the agent card. */
export const CARD_PATH = '/.well-known/agent-card.json';
