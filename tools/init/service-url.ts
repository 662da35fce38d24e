/** The URL of a merchant's service, as a person types it. */

import { readHttpUrl } from '../../src/config/document/endpoints.ts';

type ServiceUrl =
  | { readonly ok: true; readonly url: string }
  | { readonly ok: false; readonly fault: string; readonly meant: string | undefined };

/**
 * `url`: without slashes at its end. `meant`: the URL that was probably meant; `fault` proposes it.
 */
export function readServiceUrl(text: string): ServiceUrl {
  const url = text.replace(/\/+$/, '');
  const reading = readHttpUrl(url, true);
  if (reading.ok) return { ok: true, url };
  const rest = url
    .replaceAll('\\', '/')
    .replace(/^(?:[a-z]+(?::\/+|\/\/+)|https?:)/i, '')
    .replace(/^:?(?=\d+$)/, '127.0.0.1:');
  const candidate = `${/^https\b/i.test(url) ? 'https' : 'http'}://${rest}`;
  const meant = readHttpUrl(candidate, true).ok ? candidate : undefined;
  const proposal = meant === undefined ? '' : `; did you mean ${meant}?`;
  return { ok: false, fault: `the URL of your service ${reading.message}${proposal}`, meant };
}
