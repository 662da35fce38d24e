/** What stands before the path in a target of absolute form (RFC 9112, 3.2.2). */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;

/** The path of a request target, as it was sent: nothing is decoded, and nothing between two slashes is taken away. */
export function rawPath(target: string): string {
  const path = target.startsWith('/') ? target : target.replace(ORIGIN, '');
  const at = path.indexOf('?');
  return at === -1 ? path : path.slice(0, at);
}

/** What follows the mount in a raw path: empty, or from its slash on. Undefined: the path is neither the mount nor below it. */
export function belowMount(mountPath: string, path: string): string | undefined {
  if (!path.startsWith(mountPath)) return undefined;
  return path.length === mountPath.length || path[mountPath.length] === '/' ? path.slice(mountPath.length) : undefined;
}
