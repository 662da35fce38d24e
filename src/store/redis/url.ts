/** Reads the URL of a Redis server. */

/** Port of Redis when none is named. */
const DEFAULT_PORT = 6_379;

/** The parts of a URL. Credentials are decoded. */
interface RedisUrl {
  readonly at: { readonly path: string } | { readonly host: string; readonly port: number };
  readonly tls: boolean;
  readonly db?: number;
  readonly username?: string;
  readonly password?: string;
}

/**
 * Reads redis://[user:password@]host[:port][/db], rediss:// alike, and unix:///path/of.sock. The
 * client's own parser would take settings of the connection out of the query. Messages quote
 * nothing of the URL: it may hold a password.
 */
export function readRedisUrl(
  text: string,
): { readonly ok: true; readonly url: RedisUrl } | { readonly ok: false; readonly message: string } {
  const wrong = (message: string) => ({ ok: false, message }) as const;
  if (!/^[\x21-\x7e]+$/.test(text) || text.includes('\\'))
    return wrong('must not have spaces, backslashes or non-ASCII characters; percent-encode them');
  if (/[?#]/.test(text)) return wrong('must not have a query or a fragment; percent-encode ? and # in a password');
  try {
    return text.startsWith('unix://') ? unixUrl(decodeURIComponent(text.slice('unix://'.length))) : serverUrl(text);
  } catch {
    return wrong('must be a redis://, rediss:// or unix:// URL; percent-encode special characters in a password');
  }
}

function unixUrl(path: string): ReturnType<typeof readRedisUrl> {
  if (!path.startsWith('/')) return { ok: false, message: 'must name an absolute path: unix:///path/of.sock' };
  return { ok: true, url: { at: { path }, tls: false } };
}

/** @throws URIError, TypeError for an invalid URL */
function serverUrl(text: string): ReturnType<typeof readRedisUrl> {
  const { protocol, hostname, port, pathname, username, password } = new URL(text);
  if (protocol !== 'redis:' && protocol !== 'rediss:') throw new TypeError('another scheme');
  if (hostname === '') return { ok: false, message: 'must name a host' };
  if (port === '0') return { ok: false, message: 'must name a port from 1 to 65535' };
  const db = /^\/(\d{1,4})$/.exec(pathname)?.[1];
  if (db === undefined && pathname !== '' && pathname !== '/')
    return { ok: false, message: 'must end with the number of the database or with nothing' };
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : decodeURIComponent(hostname);
  return {
    ok: true,
    url: {
      at: { host, port: port === '' ? DEFAULT_PORT : Number(port) },
      tls: protocol === 'rediss:',
      ...(db === undefined ? {} : { db: Number(db) }),
      ...(username === '' ? {} : { username: decodeURIComponent(username) }),
      ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    },
  };
}
