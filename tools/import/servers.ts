/** What stands before the paths of a document: the path of its server. */

import { isObject, type Json } from '../../src/json/json.ts';
import { listed } from './operations.ts';
import { Inexpressible } from './references.ts';

const RELATIVE = 'http://relative.invalid/';

/**
 * The path of the first server, without a slash at its end. `own`: the servers of an operation that
 * has its own.
 * @throws Inexpressible when those are on another host: the gateway has one backend
 */
export function serverPath(common: Json | undefined, own: Json | undefined): string {
  const usual = urlOf(common);
  if (own === undefined) return pathOf(usual);
  const url = urlOf(own);
  if (url.host !== usual.host && url.host !== new URL(RELATIVE).host)
    throw new Inexpressible(
      `is served by another host, ${url.host}: sell it with a gateway of its own, or name --base-path where your service has it too`,
    );
  return pathOf(url);
}

function pathOf({ pathname }: URL): string {
  return pathname.replace(/\/+$/, '');
}

/** Variables of a server have their default. @throws Inexpressible */
function urlOf(servers: Json | undefined): URL {
  const [server] = listed(servers);
  if (!isObject(server) || typeof server['url'] !== 'string') return new URL(RELATIVE);
  const variables = isObject(server['variables']) ? server['variables'] : {};
  const text = server['url'].replaceAll(/\{([^{}]*)\}/g, (_whole, name: string) => {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined;
    return isObject(variable) && typeof variable['default'] === 'string' ? variable['default'] : 'x';
  });
  const url = URL.parse(text, RELATIVE);
  if (url === null) throw new Inexpressible('has a server whose URL cannot be read: correct it, or name --base-path');
  return url;
}
