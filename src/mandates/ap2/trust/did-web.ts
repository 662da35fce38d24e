/** Issuers named by `did:web`: where their DID document lies, and the keys in it. */

import { isObject, type Json, type JsonObject } from '../../../json/types.ts';
import { readMultikey } from './did-key.ts';
import type { KeysById } from './issuer.ts';
import { oneForEachId, readJwk, UselessKeys } from './jwks.ts';

const PREFIX = 'did:web:';
const HOST = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?(?:%3A[1-9][0-9]{0,4})?$/;
const SEGMENT = /^[A-Za-z0-9._-]{1,128}$/;

export function isDidWeb(id: string): boolean {
  return id.startsWith(PREFIX);
}

/** The URL of the DID document; undefined for another form. Hosts are lower-case names. */
export function didWebUrl(did: string): string | undefined {
  const [host = '', ...path] = did.slice(PREFIX.length).split(':');
  if (!HOST.test(host) || path.some((segment) => !SEGMENT.test(segment) || /^\.+$/.test(segment))) return undefined;
  const folder = path.length === 0 ? '.well-known' : path.join('/');
  const url = `https://${host.replace('%3A', ':')}/${folder}/did.json`;
  return URL.canParse(url) ? url : undefined;
}

/**
 * The keys in `assertionMethod` of a DID document, by full and by relative DID URL.
 * @throws UselessKeys when the document has another subject, and when no key remains
 */
export function keysOfDidDocument(document: Json, did: string): KeysById {
  if (!isObject(document) || document['id'] !== did) throw new UselessKeys('the DID document is not about this issuer');
  const defined = methodsOf(document['verificationMethod'], did);
  const readings = listOf(document['assertionMethod'])
    .map((method) => (typeof method === 'string' ? defined.get(absolute(method, did)) : method))
    .flatMap((method) => (isObject(method) ? [jwkOf(method, did)] : []))
    .filter((jwk) => jwk !== undefined)
    .flatMap(({ kid, jwk }) => [kid, kid.slice(did.length)].map((name) => readJwk({ ...jwk, kid: name })));
  return oneForEachId(readings);
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function methodsOf(value: Json | undefined, did: string): ReadonlyMap<string, JsonObject> {
  const methods = listOf(value).filter(isObject);
  const ids = methods.map(({ id }) => (typeof id === 'string' ? absolute(id, did) : ''));
  // Two methods with one name are ambiguous.
  const unique = methods.flatMap((method, index) => {
    const id = ids[index] ?? '';
    return ids.indexOf(id) === ids.lastIndexOf(id) ? [[id, method] as const] : [];
  });
  return new Map(unique);
}

function absolute(url: string, did: string): string {
  return url.startsWith('#') ? did + url : url;
}

/** The key of a method that the subject itself controls. */
function jwkOf(method: JsonObject, did: string): { readonly kid: string; readonly jwk: JsonObject } | undefined {
  const { id, controller, publicKeyJwk, publicKeyMultibase } = method;
  const kid = typeof id === 'string' ? absolute(id, did) : '';
  if (controller !== did || !kid.startsWith(`${did}#`)) return undefined;
  if (isObject(publicKeyJwk)) return { kid, jwk: publicKeyJwk };
  const jwk = typeof publicKeyMultibase === 'string' ? readMultikey(publicKeyMultibase) : undefined;
  return jwk && { kid, jwk };
}
