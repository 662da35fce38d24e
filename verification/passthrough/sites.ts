/**
 * Real sites behind the gateway: what header fields and second names reach of what they sell. Each
 * is asked without the gateway too, which shows that the requests would reach it.
 */

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pythonWithServers } from '../../spec/support/install-python.ts';
import { freePorts } from '../../spec/support/ports.ts';
import { startCommand, until } from '../../spec/support/program.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { installLocked } from '../npm-folder.ts';
import { openSaleGateway, type Sale, type SoldOperation } from './gateway.ts';
import { type Answer, type Case, sendAll } from './send.ts';

const SITES_FOLDER = join(import.meta.dirname, 'sites');

export interface Site {
  readonly port: number;
  close(): Promise<void>;
}

/** A site, what the gateway sells of it, and what is tried. */
export interface SiteKind {
  readonly name: string;
  start(): Promise<Site>;
  readonly sale: Sale;
  /** Requests that must not be answered with what is sold or excluded. */
  tried(site: Site): Promise<readonly Try[]>;
  /** Targets that are answered as without the gateway. */
  harmless(site: Site): Promise<readonly string[]>;
  /** Whether an answer has what is sold or excluded. */
  isSold(answer: Answer, one: Try): boolean;
}

export interface Try extends Pick<Case, 'target' | 'headers'> {}

/** What became of the requests of a site. */
export interface SiteOutcome {
  readonly requests: number;
  /** Those that get what is sold where nothing stands in front of the site. */
  readonly bare: readonly Try[];
  /** Those that get it through the gateway. */
  readonly leaked: readonly Try[];
  /** Refused with a reason that names them, or sold. */
  readonly named: number;
  readonly unnamed: readonly Try[];
  /** Harmless requests that are not answered as without the gateway. */
  readonly changed: readonly string[];
  readonly harmless: number;
}

/** `every`: one request of so many is sent. */
export async function measureSite(kind: SiteKind, every = 1): Promise<SiteOutcome> {
  const site = await kind.start();
  const gateway = await openSaleGateway(site.port, kind.sale);
  try {
    const tries = (await kind.tried(site)).filter((_one, at) => at % every === 0);
    const cases = tries.map((one, id): Case => ({ ...one, id, method: 'GET' }));
    const [bare, guarded] = [await sendAll(site.port, cases), await sendAll(gateway.port, cases)];
    const sold = (answers: ReadonlyMap<number, Answer>): readonly Try[] =>
      tries.filter((one, id) => kind.isSold(answers.get(id) ?? NONE, one));
    const reachable = tries.map((_one, id) => id).filter((id) => kind.isSold(bare.get(id) ?? NONE, tries[id] ?? FIRST));
    const unnamed = reachable.filter((id) => !isNamed(guarded.get(id) ?? NONE, tries[id] ?? FIRST));
    const targets = await kind.harmless(site);
    const plain = targets.map((target, id): Case => ({ id, method: 'GET', target }));
    const [before, after] = [await sendAll(site.port, plain), await sendAll(gateway.port, plain)];
    const same = (id: number): boolean => {
      const [one, other] = [before.get(id) ?? NONE, after.get(id) ?? NONE];
      return one.status === other.status && one.body.equals(other.body) && one.status === 200;
    };
    return {
      requests: tries.length,
      bare: sold(bare),
      leaked: sold(guarded),
      named: reachable.length - unnamed.length,
      unnamed: unnamed.map((id) => tries[id] ?? FIRST),
      changed: targets.filter((_target, id) => !same(id)),
      harmless: targets.length,
    };
  } finally {
    await gateway.close();
    await site.close();
  }
}

const NONE: Answer = { status: 0, headers: new Map(), body: Buffer.alloc(0) };
const FIRST: Try = { target: '/' };

/** A field that does not pass leaves a request that the site answers in its own way. */
function isNamed({ status, body }: Answer, { headers }: Try): boolean {
  if (status === 402) return true;
  const text = body.toString();
  if (status === 400 && /"(?:ambiguous_path|path_spelling)"/.test(text))
    return /backend\.passthrough\.allow|spelling|Spell/.test(text);
  return headers !== undefined || /NOT_FOUND/.test(text);
}

const VALUES = ['/x', '/prices', '/admin/users', 'http://127.0.0.1/prices', 'root', '127.0.0.1'] as const;

/** Fields that some server, framework, platform or proxy takes a path, a host or a caller from. */
const FIELDS: readonly string[] = [
  ...['SCRIPT_NAME', 'Script-Name', 'PATH_INFO', 'Path-Info', 'X-Script-Name', 'X-Forwarded-Script-Name'],
  ...['Daphne-Root-Path', 'Daphne_Root_Path', 'DAPHNE-ROOT-PATH', 'Root-Path', 'X-Root-Path', 'X-Path-Prefix'],
  ...['X-Forwarded-Prefix', 'X-Envoy-Original-Path', 'X-Waws-Unencoded-Url', 'X-Matched-Path', 'X-Invoke-Path'],
  ...['X-Middleware-Rewrite', 'X-Middleware-Subrequest', 'X-Now-Route-Matches', 'X-Host', 'X-HTTP-Host-Override'],
  ...['Remote-User', 'REMOTE_USER', 'X-Remote-User', 'X-SSL-Client-Cert', 'X-Auth-Request-User', 'X-User-Id'],
  ...['True-Client-IP', 'CF-Connecting-IP', 'X-Client-IP', 'Client-IP', 'X-Cluster-Client-IP', 'Fastly-Client-IP'],
  ...['X-Original-URL', 'X-Rewrite-URL', 'Request-URI', 'X-Request-URI', 'X-Replaced-Path', 'X-Base-Path'],
  ...['X-Accel-Mapping', 'X-Sendfile-Type', 'Remote-Addr', 'X-Forwarded-User', 'X-Astro-Path', 'Proxy'],
  ...['WSGI_URL_SCHEME', 'RAW_URI', 'X-Backend-Key', 'X-HTTP-Method-Override'],
];

/** Every field with each value, at each target. */
function withFields(targets: readonly string[]): readonly Try[] {
  return FIELDS.flatMap((name) =>
    VALUES.flatMap((value) => targets.map((target) => ({ target, headers: { [name]: value } }))),
  );
}

/** Names that frameworks give to the handler of a path. */
function secondNamesOf(path: string, build = 'h4sh'): readonly string[] {
  const encoded = encodeURIComponent(path);
  return [
    ...[
      '/x',
      '.json',
      '.xml',
      '.html',
      '.data',
      '.rsc',
      '/',
      '/__data.json',
      '/_payload.json',
      'X',
      '-all',
      '/full',
    ].map((end) => path + end),
    ...['/en', '/de', '/EN', '/v1', '/index.php', '/app.php', '/x'].map((start) => start + path),
    ...[`/_next/data/${build}${path}.json`, `/_next/data/${build}/en${path}.json`, `/page-data${path}/page-data.json`],
    ...['/image?url=', '/_next/image?w=640&q=75&url=', '/?rest_route=', '/image?path=', '/?page='].flatMap((query) => [
      query + path,
      query + encoded,
      query + encodeURIComponent(encoded),
      `${query}http://127.0.0.1${path}`,
    ]),
    `/index.php?${path}`,
  ];
}

const DJANGO: readonly SoldOperation[] = [
  { id: 'prices', method: 'GET', template: '/prices', target: '/prices', inPlace: true },
  { id: 'full', method: 'GET', template: '/reports/{city}/full', target: '/reports/berlin/full', inPlace: true },
];

/** The Django site behind a server in its default configuration. */
function django(name: string, args: (port: number) => readonly string[]): SiteKind {
  return {
    name,
    start: () => startPython(args),
    // What lies below /x passes: there only the fields keep callers from moving the path.
    sale: { operations: DJANGO, passthrough: { exclude: ['/admin'], allow: ['/x'] } },
    async tried() {
      const paths = [...DJANGO.map(({ target }) => target), '/admin/users'];
      return [
        ...withFields([...paths.map((path) => `/x${path}`), '/x', '/']),
        ...paths.flatMap((path) => secondNamesOf(path)).map((target) => ({ target })),
      ];
    },
    harmless: async () => ['/about', '/about?next=/about', '/image?url=/about', '/about?page=2'],
    isSold: ({ status, body }) => status === 200 && /GOODS|STAFF/.test(body.toString()),
  };
}

export const PYTHON_SITES: readonly SiteKind[] = [
  django('Django, gunicorn', (port) => ['gunicorn', '--bind', `127.0.0.1:${port}`, 'shop:application']),
  django('Django, daphne', (port) => ['daphne', '-b', '127.0.0.1', '-p', String(port), 'shop:asgi_application']),
];

const NEXT: readonly SoldOperation[] = ['/prices', '/reports/{city}', '/api/quote', '/api/chart', '/market'].map(
  (template) => ({
    id: template.replaceAll(/\W+/g, '_'),
    method: 'GET',
    template,
    target: template.replace('{city}', 'berlin'),
    inPlace: true,
  }),
);

/** A Next.js site of both routers, with locales. Its rewrite has other words, so it is excluded. */
const NEXT_SITE: SiteKind = {
  name: 'Next.js',
  start: startNext,
  sale: { operations: NEXT, passthrough: { exclude: ['/shop'], allow: ['/_next/static'] } },
  async tried(site) {
    const build = await buildOf(site);
    const names = NEXT.flatMap(({ target }) => [
      ...secondNamesOf(target, build),
      `${target}.txt`,
      `${target}?_rsc=1`,
      `/shop${target}`,
      `/de${target}.json`,
      `/_next/data/${build}/de${target}.json`,
    ]);
    return [
      ...withFields(['/', '/about', ...NEXT.map(({ target }) => target)]),
      ...names.map((target) => ({ target })),
    ];
  },
  async harmless(site) {
    const build = await buildOf(site);
    const page = await (await fetch(`http://127.0.0.1:${site.port}/about`)).text();
    const assets = [...page.matchAll(/"(\/_next\/static\/[^"]+)"/g)].map(([, target = '']) => target);
    const image = '/_next/image?url=%2Flogo.png&w=640&q=75';
    return ['/', '/about', '/de/about', '/logo.png', image, `/_next/data/${build}/en/about.json`, ...new Set(assets)];
  },
  isSold: ({ status, headers, body }, { target }) =>
    status === 200 &&
    (body.includes('GOODS') ||
      (target.includes('chart') && headers.get('content-type')?.[0]?.startsWith('image/') === true)),
};

async function buildOf({ port }: Site): Promise<string> {
  const page = await (await fetch(`http://127.0.0.1:${port}/about`)).text();
  return /"buildId":"([^"]+)"/.exec(page)?.[1] ?? 'h4sh';
}

/** Installed from its own lockfile and built below `.cache` the first time: 330 MB. */
async function startNext(): Promise<Site> {
  const folder = await installLocked(join(SITES_FOLDER, 'next'), join(import.meta.dirname, '../../.cache/slips-next'));
  const next = join(folder, 'node_modules/next/dist/bin/next');
  const env = { NEXT_TELEMETRY_DISABLED: '1' };
  if (!existsSync(join(folder, '.next/BUILD_ID')))
    await promisify(execFile)(process.execPath, [next, 'build'], { cwd: folder, env: { ...process.env, ...env } });
  const [port = 0] = await freePorts(1);
  return startSite(process.execPath, [next, 'start', '-H', '127.0.0.1', '-p', String(port)], {
    port,
    env,
    cwd: folder,
  });
}

/** Every site of the table. */
export const SITES: readonly SiteKind[] = [...PYTHON_SITES, NEXT_SITE];

async function startPython(args: (port: number) => readonly string[]): Promise<Site> {
  const { program, env } = await pythonWithServers();
  const [port = 0] = await freePorts(1);
  return startSite(program, ['-m', ...args(port)], { port, env, cwd: SITES_FOLDER });
}

/** Starts the server of a site, and waits until it answers. */
export async function startSite(
  program: string,
  args: readonly string[],
  { port, env, cwd }: { readonly port: number; readonly env: Readonly<Record<string, string>>; readonly cwd: string },
): Promise<Site> {
  const { child, errors } = startCommand(program, args, { cwd, env });
  leash(child);
  const answers = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/about`).then(
      ({ ok }) => ok,
      () => {
        if (child.exitCode !== null) throw new Error(`${program} ended: ${errors()}`);
        return false;
      },
    );
  await until(`${args.join(' ')} answers`, answers);
  return {
    port,
    async close() {
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    },
  };
}
