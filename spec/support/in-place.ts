/** Calls of the sample resources at the backend's own addresses, as a client spells them. */

import { sampleResources } from './resources.ts';

/** One request, as `fetch` takes it. */
export interface InPlaceRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly body: string | undefined;
}

interface Sold {
  readonly backend: { readonly method: string; readonly path: string };
  readonly pricing: { readonly type: string };
  readonly expose: readonly string[];
}

/** Overrides for `worldConfig` that sell every priced resource in place as well. */
export function soldInPlace(currency: string): Readonly<Record<string, { readonly expose: readonly string[] }>> {
  const resources = Object.entries(sampleResources(currency)) as readonly (readonly [string, Sold])[];
  return Object.fromEntries(
    resources
      .filter(([, { pricing }]) => pricing.type !== 'free')
      .map(([id, { expose }]) => [id, { expose: [...expose, 'origin'] }]),
  );
}

/** The request that buys a sample resource in place with this input; what is missing is empty. */
export function inPlaceRequest(resourceId: string, input: unknown = {}): InPlaceRequest {
  const sold = sampleResources('any')[resourceId] as Sold | undefined;
  const { method, path } = sold?.backend ?? { method: 'GET', path: `/${resourceId}` };
  const members = Object.entries(input as Readonly<Record<string, unknown>>);
  const inPath = members.filter(([name]) => path.includes(`{${name}}`));
  const rest = members.filter(([name]) => !path.includes(`{${name}}`));
  const filled = inPath
    .reduce((target, [name, value]) => target.replace(`{${name}}`, encodeURIComponent(String(value))), path)
    .replaceAll(/\{[^{}]*\}/g, '');
  if (method === 'POST') return { method, target: filled, body: JSON.stringify(Object.fromEntries(rest)) };
  const query = rest.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&');
  return { method, target: query === '' ? filled : `${filled}?${query}`, body: undefined };
}

/** Sends the request that buys a sample resource in place. */
export function callInPlace(
  gateway: { readonly url: string },
  resourceId: string,
  input: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const { method, target, body } = inPlaceRequest(resourceId, input);
  return fetch(`${gateway.url}${target}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body }),
  });
}
