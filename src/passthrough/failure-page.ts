/** The page that a person sees instead of the error envelope when a passed request fails. */

import type { GatewayError } from '../errors.ts';

/** Nothing of the page is loaded from anywhere, and nothing in it runs. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'",
} as const;

/** Static but for the status, the text of a known error, and an id whose form is checked. */
export function failurePage(error: GatewayError, requestId: string): string {
  const text = escaped(error.message);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${error.status}</title></head>
<body><h1>${error.status}</h1><p>${text}</p><p>Request ${escaped(requestId)}</p></body></html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
