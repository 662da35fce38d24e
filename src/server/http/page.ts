/** Static pages for people: no script, no form, no frame, nothing from elsewhere. */

import { createHash } from 'node:crypto';

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:3em auto;padding:0 1em}' +
  'dt{font-weight:bold}dd{margin:0 0 .5em;overflow-wrap:anywhere}pre{overflow:auto;padding:1em;background:#eee}';
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** The one style is named by its digest. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
} as const;

/** A page up to where its text begins. */
export function pageOpening(title: string): string {
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapedHtml(title)}</title>` +
    `<style>${STYLE}</style></head><body>`
  );
}

export const PAGE_CLOSING = '</body></html>\n';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapedHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
