/** Where the Agent Card is served: the wiring knows it before the adapter is loaded. */

export const CARD_PATH = '/.well-known/agent-card.json';
