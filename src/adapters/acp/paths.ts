/** Where the discovery of checkouts is served: the wiring knows it before the adapter is loaded. */

/** Agents look for the service at the root of the origin. */
export const DISCOVERY_PATH = '/.well-known/acp.json';
/** How long they may keep the document, seconds (specification 8). */
export const DISCOVERY_MAX_AGE_S = 3_600;
