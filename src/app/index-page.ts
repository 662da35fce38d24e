/** The page at `/` that a browser gets: what is sold here, and where it is described. */

import type { Introduction } from '../resources/introductions.ts';
import { escapedHtml, PAGE_CLOSING, pageOpening } from '../server/http/page.ts';

/** Everything is written at start. */
export function indexPage({ name, entries, links, more }: Introduction): string {
  const sold = entries.map(
    (entry) =>
      `<dt>${escapedHtml(entry.name)}</dt><dd>${escapedHtml(entry.text)}<br><code>${escapedHtml(entry.url)}</code></dd>`,
  );
  return [
    `${pageOpening(name)}<h1>${escapedHtml(name)}</h1>`,
    '<p>Programs call these operations over HTTP; priced ones are paid for each call with x402.</p>',
    `<dl>${sold.join('')}</dl>`,
    more > 0 ? `<p>And ${more} more.</p>` : '',
    `<ul>${links.map(({ url, title }) => `<li><a href="${escapedHtml(url)}">${title}</a></li>`).join('')}</ul>`,
    PAGE_CLOSING,
  ].join('');
}
