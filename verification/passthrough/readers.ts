/**
 * The merchants that read paths by hand, as servers do that are no packages: bare `URL`, servlet
 * containers, Windows, stacks that take the path from a header, and one that does it all.
 */

import type { IncomingHttpHeaders, IncomingMessage, RequestListener } from 'node:http';
import path from 'node:path';
import type { MerchantKind } from './merchant.ts';

/** Each reads the path of a request; undefined where it refuses it. */
export const READERS: readonly MerchantKind[] = [
  reader('bare URL', ({ url = '/' }) => urlPath(url)),
  reader('bare, decoded and normalised, any method', ({ url = '/' }) => normalisedPath(url), { anyMethod: true }),
  reader('servlet container', ({ url = '/' }) => servletPath(url)),
  reader('Windows', ({ url = '/' }) => windowsPath(url), { anyMethod: true }),
  reader('path from headers', ({ url = '/', headers }) => urlPath(headerPath(headers) ?? url)),
  reader('everything at once', ({ url = '/' }) => mostTolerantPath(url), { anyMethod: true }),
];

const REPORT = /^\/reports\/[^/]+$/;
const PRICES = /^\/prices\.csv$/;
const CONFIRM = /^\/orders\/[^/]+\/confirm$/;

function reader(
  name: string,
  read: (req: IncomingMessage) => string | undefined,
  { anyMethod = false }: { readonly anyMethod?: boolean } = {},
): MerchantKind {
  const build = (ran: (req: IncomingMessage) => void): RequestListener => {
    return function answer(req, res) {
      const found = read(req);
      const isGet = anyMethod || req.method === 'GET' || req.method === 'HEAD';
      const isPost = anyMethod || req.method === 'POST';
      if (found === undefined) res.statusCode = 400;
      else if ((isGet && (REPORT.test(found) || PRICES.test(found))) || (isPost && CONFIRM.test(found))) ran(req);
      res.end('bare');
    };
  };
  return { name, build };
}

function urlPath(target: string): string | undefined {
  return URL.parse(target, 'http://shop.test')?.pathname;
}

function normalisedPath(target: string): string | undefined {
  const decoded = decodedOnce(pathOf(target));
  return decoded && path.posix.normalize(decoded.replaceAll('\\', '/')).toLowerCase().replace(/\/$/, '');
}

/** Path parameters go before anything is decoded, then slashes are folded and dots resolved. */
function servletPath(target: string): string | undefined {
  const decoded = decodedOnce(pathOf(target).replaceAll(/;[^/]*/g, ''));
  return decoded && path.posix.normalize(decoded.replaceAll('\\', '/'));
}

/** `%u` escapes are read, and each segment loses the spaces and dots behind it. */
function windowsPath(target: string): string | undefined {
  const decoded = decodedOnce(readPercentU(pathOf(target))) ?? latin1(pathOf(target));
  return trimmedSegments(path.posix.normalize(decoded.replaceAll('\\', '/')).toLowerCase());
}

/** Decodes three times, overlong forms too, cuts at nulls, and compares letters without case. */
function mostTolerantPath(target: string): string {
  let text = pathOf(target.replace(/^[a-z]+:\/\/[^/]*/i, ''));
  for (let round = 0; round < 3; round += 1)
    text = readPercentU(text).replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => decodedOnce(run) ?? overlong(latin1(run)));
  const [before = ''] = text.normalize('NFKC').split('\0');
  const plain = before.replaceAll('\\', '/').replaceAll(/;[^/]*/g, '');
  const resolved = path.posix.normalize(plain.replaceAll(/(?<=\/\.{1,2}) +(?=\/|$)/g, ''));
  return trimmedSegments([...resolved].map((letter) => letter.toUpperCase().toLowerCase()).join(''));
}

/** Header names as CGI has them, where a hyphen and an underscore are the same. */
function headerPath(headers: IncomingHttpHeaders): string | undefined {
  const named = Object.entries(headers).find(([name]) => REWRITTEN.test(name.replaceAll('_', '-')));
  return named && String(named[1]);
}

const REWRITTEN = /^x-(?:original-ur[li]|rewrite-url)$/;

function pathOf(target: string): string {
  return target.split(/[?#]/)[0] ?? '';
}

function trimmedSegments(text: string): string {
  return text.replaceAll(/[. ]+(?=\/|$)/g, '').replace(/\/$/, '');
}

function decodedOnce(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function readPercentU(text: string): string {
  return text.replaceAll(/%u([0-9a-f]{4})/gi, (_escape, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}

function latin1(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_escape, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** Two and three bytes for a letter that one byte holds, as careless decoders read them. */
function overlong(text: string): string {
  return text
    .replaceAll(/[\xc0\xc1][\x80-\xbf]/g, (bytes) => letter(bytes.charCodeAt(0) & 0x1f, bytes.charCodeAt(1)))
    .replaceAll(/\xe0[\x80-\x9f][\x80-\xbf]/g, (bytes) => letter(bytes.charCodeAt(1) & 0x3f, bytes.charCodeAt(2)));
}

function letter(high: number, low: number): string {
  return String.fromCharCode((high << 6) | (low & 0x3f));
}
