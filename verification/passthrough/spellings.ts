/**
 * The spellings that the slip table tries: every known way to write the path of something sold
 * differently, each alone and in combinations of two and three, the same for the same seed.
 */

import { type Chance, chanceOf } from '../chaos/sim/chance.ts';
import { SOLD } from './gateway.ts';

/** One request line, without the method. */
export interface Spelling {
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Methods that every spelling is tried with. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'PROPFIND'] as const;

/** At least `count` spellings. The first are those with one change each, and all headers. */
export function spellings(count: number, seed: number): readonly Spelling[] {
  const chance = chanceOf(seed);
  const targets = SOLD.map(({ target }) => target);
  const changes = [...pathChanges(chance), ...targetChanges()];
  const known = new Set<string>();
  const made: Spelling[] = [];
  const add = (target: string, headers?: Spelling['headers']): void => {
    const name = JSON.stringify([target, headers]);
    if (known.has(name) || /[\r\n ]/.test(target) || target === '') return;
    known.add(name);
    made.push(headers === undefined ? { target } : { target, headers });
  };
  for (const target of targets) add(target);
  for (const change of changes) for (const target of targets) add(change(target));
  for (const headers of HEADERS) for (const target of ['/', '/free', ...targets]) add(target, headers);
  while (made.length < count) {
    const [first, second] = [chance.pick(changes), chance.pick(changes)];
    const twice = second(first(chance.pick(targets)));
    add(
      chance.happens(0.2) ? chance.pick(changes)(twice) : twice,
      chance.happens(0.1) ? chance.pick(HEADERS) : undefined,
    );
  }
  return made;
}

type Change = (target: string) => string;

/** Headers and parameters by which stacks take the method or the path from elsewhere. */
const HEADERS: readonly Readonly<Record<string, string>>[] = [
  ...['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'X_HTTP_Method_Override'].flatMap((name) => [
    { [name]: 'GET' },
    { [name]: 'POST' },
  ]),
  ...['X-Original-URL', 'X-Rewrite-URL', 'X-Original-URI', 'X_Original_URL', 'x-ORIGINAL-url'].flatMap((name) =>
    SOLD.map(({ target }) => ({ [name]: target })),
  ),
  { Connection: 'x-original-url', 'X-Original-URL': '/reports/berlin' },
  { 'X-Forwarded-Prefix': '/reports', 'X-Forwarded-Path': '/reports/berlin', 'X-Forwarded-Uri': '/reports/berlin' },
];

/** One change of the path for each mark; what follows a `?` stays. */
function each(marks: readonly string[], changed: (path: string, mark: string) => string): readonly Change[] {
  return marks.map((mark) => (target) => onPath(target, (path) => changed(path, mark)));
}

/** Changes of the path. */
function pathChanges(chance: Chance): readonly Change[] {
  return [
    ...literalChanges(chance),
    ...slashChanges(),
    ...dotChanges(),
    ...each(ENDINGS, (path, ending) => path + ending),
    ...each(AFTER_LITERAL, (path, mark) => path.replace(/^(\/+[^/]+)/, `$1${mark}`)),
    ...each(BEFORE, (path, mark) => mark + path),
    ...secondNames(),
    ...each(PARAMETERS, (path, value) => path.replace(/berlin|42/, value)),
  ];
}

/** Names that routers and frameworks give to the same handler. */
function secondNames(): readonly Change[] {
  const asValue = (written: (target: string) => string): readonly Change[] =>
    AS_VALUE.map((pair) => (target) => pair.replace('PATH', written(target)));
  return [
    ...each(BEHIND, (path, end) => path + end),
    ...each(ABOVE, (path, start) => start + path),
    ...asValue((target) => target.replaceAll('#', '%23')),
    ...asValue(encodeURIComponent),
  ];
}

const BEHIND: readonly string[] = [
  ...['/x', '/x/y', '.json', '.xml', '.html', '.gz', '.data', '.rsc', '/__data.json', '/_payload.json'],
  ...['/index.html', 'X', '-all', '_', '2', '~', '@x', ':x', ',x', "('7')", '!', '$', '&x=1', '/confirm'],
  ...['/page-data.json', '/full'],
];

const ABOVE: readonly string[] = [
  ...['/en', '/EN', '/de-ch', '/v1', '/x/y', '/index.php', '/index.php/x', '/app.php', '/_next/data/h4sh'],
  ...['/_next/data/h4sh/en', '/page-data', '/amp', '/cdn-cgi/image/width=80', '/_ipx/w_200', '/api', '/web'],
];

const AS_VALUE: readonly string[] = [
  ...['/_next/image?url=PATH&w=640&q=75', '/_vercel/image?url=PATH', '/?rest_route=PATH', '/?path=PATH', '/?r=PATH'],
  ...['/index.php?page=PATH', '/index.php?PATH', '/x?a=1&url=http://127.0.0.1:3000PATH', '/?Path=PATH'],
  ...['/?%75rl=PATH', '/?urls=[%22PATH%22]', '/?x=1;path=PATH'],
];

/** Other letters for those of the path: case, escapes once and more often, look-alikes. */
function literalChanges(chance: Chance): readonly Change[] {
  const letters = (pick: (letter: string) => boolean, to: (letter: string) => string): Change => {
    return (target) =>
      onPath(target, (path) => path.replaceAll(/[a-z]/gi, (letter) => (pick(letter) ? to(letter) : letter)));
  };
  const all = (): boolean => true;
  const some = (): boolean => chance.happens(0.3);
  const first = (to: (letter: string) => string): Change => {
    return (target) => onPath(target, (path) => path.replace(/[a-z]/i, to));
  };
  const upper = (letter: string): string => letter.toUpperCase();
  const forms = [escaped, escapedUpper, twice, thrice, fourTimes, unicodeEscape, overlong2, overlong3, fullWidth];
  return [
    letters(all, upper),
    letters(some, upper),
    first(upper),
    ...forms.flatMap((form) => [first(form), letters(some, form), letters(all, form)]),
    letters(
      (letter) => letter in LOOK_ALIKES,
      (letter) => LOOK_ALIKES[letter] ?? letter,
    ),
    ...['%C4%B1', '%C4%B0'].map((dotless) =>
      letters(
        (letter) => letter === 'i',
        () => dotless,
      ),
    ),
    letters(
      (letter) => letter === 's',
      () => '%C5%BF',
    ),
  ];
}

/** Letters that are another one once they are normalised (NFKC). */
const LOOK_ALIKES: Readonly<Record<string, string>> = {
  r: '%E2%93%A1',
  s: '%C5%BF',
  p: '%F0%9D%90%A9',
  o: '%C2%BA',
  c: '%E2%85%BD',
};

function slashChanges(): readonly Change[] {
  const inner = (mark: string): readonly Change[] => [
    (target) => onPath(target, (path) => `/${path.slice(1).replaceAll('/', mark)}`),
    (target) => onPath(target, (path) => `/${path.slice(1).replace('/', mark)}`),
    (target) => onPath(target, (path) => `/x${mark}..${mark}${path.slice(1)}`),
    (target) => onPath(target, (path) => `/${mark}${path.slice(1)}`),
  ];
  return SEPARATORS.flatMap(inner);
}

/** What some server takes for a slash, or for one beside something that it removes. */
const SEPARATORS = [
  ...['//', '///', '/./', '/.//', '\\', '%2f', '%2F', '%5c', '%5C', '%252f', '%255c', '%25252f', '%c0%af'],
  ...['%e0%80%af', '%EF%BC%8F', '%EF%BC%BC', '%E2%88%95', '%E2%81%84', '%u002f', '%u2215', '/%2e/', '/;/', '/;x=y/'],
  ...['/%20/', '/%00/', '/.;/', '%2f%2f', '/%2f', '/%5c', '%C1%9C'],
];

function dotChanges(): readonly Change[] {
  return DOTS.flatMap((dots): readonly Change[] => [
    (target) => onPath(target, (path) => `/x/${dots}${path}`),
    (target) => onPath(target, (path) => `/${dots}${path}`),
    (target) => onPath(target, (path) => `${path}/${dots}`),
    (target) => onPath(target, (path) => `${path}/x/${dots}`),
    (target) => onPath(target, (path) => path.replace(/^(\/+[^/]+)/, `$1/x/${dots}`)),
    (target) => onPath(target, (path) => path.replace(/^(\/+[^/]+)/, `$1/${dots}$1`)),
  ]);
}

const DOTS = [
  ...['.', '..', '%2e', '%2E%2e', '.%2e', '%2e.', '..;', '..;a=b', '.;', '%252e%252e', '%25252e%25252e', '...'],
  ...['..%00', '..%20', '%c0%ae%c0%ae', '%EF%BC%8E%EF%BC%8E', '%E2%80%A5', '..%09', '.%00.', '%u002e%u002e', '..%3b'],
];

const ENDINGS = [
  ...['/', '//', '/.', '/..', '.', '..', '...', '%20', '%20%20', '%00', '%09', '%0a', '%0d%0a', '%7f', '%2e', '%2f'],
  ...['%5c', '\\', '%00.png', '%0a.png', '.json', '.html', '.', '+', '~', '%', '%2', '%zz', '%FF', '%c0'],
  ...['%ED%A0%80', '%F8%80%80%80%80', ';', ';v=1', ';jsessionid=0A1B', ';/', ';%2f', '%3b', '%3Bv=1', ';v=1;w=2'],
  ...[',v=1', '!', '*', "'", '"', '|', '^', '`', '{', '}', '?', '??', '?x=1', '?_method=GET', '?_method=POST'],
  ...['?_method=get&_method=PUT', '?/../x', '?;', '?#', '#', '#x', '%23', '%3f', '%3fx', '%2500', '%252e', '%C2%A0'],
  ...['%E2%80%8B', '%E3%80%80', '%EF%BC%8E', '%E3%80%82', '::$DATA', ':80', '@', '%40', '&x=1', '=1'],
];

const AFTER_LITERAL = [
  ...['.', '..', '%20', '%2e', '%00', '%09', '%0a', ';', ';v=1', ';jsessionid=1', '%3b', '%3Bx', '%20%2e', '%C2%A0'],
  ...['%7f', '%E3%80%80', '%2520', '%2e%20', '%00x', '%c0%80', '?', '#', '%3f', '%23', '%', '%zz', ':', '%1f', '%85'],
  ...['%C2%85', '%E2%80%A8'],
];

const BEFORE = [
  ...['/', '//', '/.', '/..', '/;', '/;x', '/%2f', '/%5c', '/\\', '\\', '/%20', '/%00', '/x/..', '/x/../y/..'],
  ...['/x/%2e%2e', '/x/..;', '/x;/..', '//x/..', '/x//..', '/x//../..', '/%2e', '/%2e%2f', '/%c0%ae', '/x/..%2f'],
  ...['/x/..%5c', '/x\\..', '/%ff/..', '/%/..', '/a/b/../..', '/a%2fb/..', '/a/b/%2e%2e/..', '/~', '/*', '/@'],
];

/** Values of the parameter that some router takes and another one resolves. */
const PARAMETERS = [
  ...['', '.', '..', '%2e', '%2e%2e', '%2E%2E%2F', 'a%2fb', 'a%5cb', 'a\\b', 'z%FCrich', 'z%C3%BCrich', '%c0%af'],
  ...['50%', '%', '%zz', 'a;b', ';', ';;', 'a//b', '*', 'a,b', 'a%00b', '%00', '%20', '+', '%F0%9F%92%A9', 'a%3fb'],
  ...['a%23b', 'a%25b', 'a%252fb', '%EF%BC%8Fb', '..%2f..%2f', '%u0062', 'berlin.json', 'berlin/today'],
  ...['berlin/confirm', '{city}', ':city', '%7Bcity%7D', '(x)', '$', '__proto__', '-'],
];

const ORIGINS = [
  ...['http://evil.test', 'https://evil.test', 'HTTP://evil.test:80', 'ftp://x', 'file://', 'http://a@evil.test'],
  ...['ws://x', 'x:', '//evil.test', '///evil.test', '/\\evil.test', '/http://evil.test', '/%2f%2fevil.test'],
];

/** Changes of the whole target. */
function targetChanges(): readonly Change[] {
  return [
    ...ORIGINS.map(
      (origin): Change =>
        (target) =>
          origin + target,
    ),
    (target) => target.slice(1),
    (target) => `*${target}`,
    (target) => `?${target}`,
    (target) => `#${target}`,
    (target) => `/?${target}`,
    (target) => `/x?/..${target}`,
    (target) => `/x#/..${target}`,
    (target) => `/x%3f/..${target}`,
    (target) => `/x%23/..${target}`,
    (target) => target.replaceAll('e', '\xe9'),
    (target) => `${target}\xff`,
    (target) => `${target}\t`,
    (target) => `${target}\x01`,
    (target) => `${target}?${'x'.repeat(7_000)}`,
    (target) => `/${'x/../'.repeat(400)}${target.slice(1)}`,
    (target) => `/${'/'.repeat(2_000)}${target.slice(1)}`,
    (target) => `/${'./'.repeat(1_000)}${target.slice(1)}`,
    (target) => `/${'%2e/'.repeat(1_000)}${target.slice(1)}`,
    (target) => `/${'a'.repeat(8_200)}/..${target}`,
  ];
}

function onPath(target: string, change: (path: string) => string): string {
  const mark = target.indexOf('?');
  return mark < 0 ? change(target) : change(target.slice(0, mark)) + target.slice(mark);
}

function code(letter: string): string {
  return letter.charCodeAt(0).toString(16).padStart(2, '0');
}

function escaped(letter: string): string {
  return `%${code(letter)}`;
}

function escapedUpper(letter: string): string {
  return `%${code(letter.toUpperCase()).toUpperCase()}`;
}

function twice(letter: string): string {
  return `%25${code(letter)}`;
}

function thrice(letter: string): string {
  return `%2525${code(letter)}`;
}

function fourTimes(letter: string): string {
  return `%252525${code(letter)}`;
}

function unicodeEscape(letter: string): string {
  return `%u00${code(letter)}`;
}

function overlong2(letter: string): string {
  const value = letter.charCodeAt(0);
  return `%${(0xc0 | (value >> 6)).toString(16)}%${(0x80 | (value & 0x3f)).toString(16)}`;
}

function overlong3(letter: string): string {
  const value = letter.charCodeAt(0);
  return `%e0%${(0x80 | (value >> 6)).toString(16)}%${(0x80 | (value & 0x3f)).toString(16)}`;
}

function fullWidth(letter: string): string {
  return encodeURIComponent(String.fromCharCode(letter.charCodeAt(0) + 0xfee0));
}
