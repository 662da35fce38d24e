/** What stands before the path in a target of absolute form (RFC 9112, 3.2.2), and the host in it. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;

/**
 * A request target without the origin that a proxy is told (RFC 9112, 3.2.2), beginning with a slash, and `*` as it is. Nothing is
 * decoded, and nothing between two slashes is taken away.
 */
export function originForm(target: string): string {
  if (target.startsWith('/') || target === '*') return target;
  const rest = target.replace(ORIGIN, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** The host of a target in absolute form, which stands above the Host header; undefined in any other form. */
export function targetHost(target: string): string | undefined {
  return ORIGIN.exec(target)?.[1];
}

/** The path of a request target, as it was sent. */
export function rawPath(target: string): string {
  const path = originForm(target);
  const at = path.indexOf('?');
  return at === -1 ? path : path.slice(0, at);
}

/** What follows the mount in a raw path: empty, or from its slash on. Undefined: the path is neither the mount nor below it. */
export function belowMount(mountPath: string, path: string): string | undefined {
  if (!path.startsWith(mountPath)) return undefined;
  return path.length === mountPath.length || path[mountPath.length] === '/' ? path.slice(mountPath.length) : undefined;
}
