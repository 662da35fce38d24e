/** Turns the validated document into the typed configuration, section by section. */

import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { checksumAddress } from '../crypto/hash.ts';
import { readSigningKey } from '../crypto/signing-key.ts';
import type { Channel } from '../events/event.ts';
import type { X402Config } from '../payments/x402/wire/settings.ts';
import { memberPath, type ProblemList } from '../problems/problem.ts';
import { PUBLISHED_NAMES } from '../resources/published.ts';
import { textFault } from '../resources/schemas/schema-check.ts';
import type { ResourceConfig } from '../resources/settings.ts';
import type { GatewayConfig } from './document/config.ts';
import type { ConfigDocument } from './document/document.ts';
import { FORBIDDEN_HOST, hostKind, isLoopbackUrl, publicUrlFault, readHttpUrl } from './document/endpoints.ts';
import { eachText, secretsIn, toldName } from './document/member.ts';
import { type AcpSurroundings, deriveAcp } from './sections/acp.ts';
import { deriveAp2, mandateSetting } from './sections/ap2.ts';
import { deriveBackend } from './sections/backend.ts';
import { deriveSigning, keyUses } from './sections/keys.ts';
import {
  addressOverlaps,
  deriveResource,
  type PriceAssets,
  priceAssets,
  quotesOfSales,
  type ResourceSurroundings,
} from './sections/resources.ts';
import { deriveStorage, type Engine, engineOf, SEALING_KEYS, storageKeys } from './sections/storage.ts';
import { deriveEntries, entriesOf } from './sections/x402.ts';

const RESOURCES = schema.properties.resources;
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;

/** Checks of texts that a JSON Schema cannot express, by `x-form`; each returns the fault. */
const FORMS: Readonly<Record<string, (text: string, document: ConfigDocument) => string | undefined>> = {
  text: textFault,
  url: (text) => urlFault(text, false),
  'url-or-empty': (text) => (text === '' ? undefined : urlFault(text, false)),
  'plain-url': (text) => urlFault(text, true),
  'public-url': publicUrlFault,
  backend: backendFault,
  origin: originFault,
  address: addressFault,
  payers: payersFault,
};

interface DocumentFacts {
  /** Paths whose value came out of a mounted file. */
  readonly fromFile: ReadonlySet<string>;
  /** The folder of the file; undefined for a text. */
  readonly folder: string | undefined;
}

/**
 * Applies each rule whose input was accepted, so that one run names as many problems as it can.
 * @throws ConfigError
 */
export function deriveConfig(
  document: ConfigDocument,
  { fromFile, folder }: DocumentFacts,
  problems: ProblemList,
): GatewayConfig {
  checkForms(document, problems);
  const engine = engineOf(document, problems);
  const merchant = deriveMerchant(document, problems);
  const server = deriveServer(document, problems);
  const management = deriveManagement(document, problems);
  const backend = deriveBackend(document, problems);
  if (merchant && server && management && backend)
    checkBackend(document.backend.baseUrl, [server.port, management.port], merchant.publicBaseUrl, problems);
  const keys = storageKeys(document, problems);
  const storage = deriveStorage(document, keys, folder, problems);
  const { entries, assets } = derivePayments(document, engine, fromFile, problems);
  const trial = isTrial(document, engine, entries, problems);
  const protocols = deriveProtocols(document, { backend, trial, sealing: keys }, problems);
  const uses = keyUses(document, problems);
  const signing = deriveSigning(document, uses, problems);
  const ap2 = deriveAp2(document, merchant, assets, uses, problems);
  const surroundings: ResourceSurroundings = {
    publicBaseUrl: merchant?.publicBaseUrl ?? '',
    labels: merchant === undefined ? {} : labelsOf(merchant),
    passes: backend?.passthrough !== undefined,
    backend: backend ?? { origin: '', pathPrefix: '', headers: {} },
    enabled: enabledChannels(document, problems),
    assets,
    mandates: mandateSetting(document, ap2, problems),
    seals: keys.length > 0 || !problems.sound(SEALING_KEYS),
  };
  const resources = deriveResources(document, surroundings, problems);
  problems.throwIfAny();
  if (!(merchant && server && management && backend && storage && protocols))
    throw new Error('a section is missing although nothing was refused');
  const [x402, ...alternatives] = entries ?? [];
  return {
    merchant,
    server,
    management,
    backend,
    storage,
    protocols,
    x402,
    alternatives,
    blockedPayers: blockedPayers(document, problems),
    authorization: { ap2 },
    signing,
    resources,
    publish: new Set(document.publish ?? (backend.passthrough === undefined ? PUBLISHED_NAMES : [])),
    limits: deriveLimits(document),
    secrets: secretsIn(document),
  };
}

/** Checks the form of each text that the schema accepted. */
function checkForms(document: ConfigDocument, problems: ProblemList): void {
  eachText(document, (text, { 'x-form': form = '' }, path) => {
    const fault = FORMS[form]?.(text, document);
    if (fault !== undefined && problems.sound(path())) problems.add(path(), fault);
  });
}

function urlFault(text: string, plain: boolean): string | undefined {
  const reading = readHttpUrl(text, plain);
  if (!reading.ok) return reading.message;
  return hostKind(reading.url) === 'forbidden' ? FORBIDDEN_HOST : undefined;
}

/** Refuses hosts outside this pod unless allowed: the gateway must be no way into the network. */
function backendFault(text: string, { backend }: ConfigDocument): string | undefined {
  const fault = urlFault(text, true);
  if (fault !== undefined || hostKind(new URL(text)) === 'loopback') return fault;
  if (backend?.allowNonLoopback) return undefined;
  return 'must be on loopback (127.0.0.1, [::1], localhost), or set backend.allowNonLoopback: true';
}

function originFault(text: string): string | undefined {
  const origin = text.toLowerCase();
  if (/^https?:\/\//.test(origin) && URL.canParse(origin) && new URL(origin).origin === origin) return undefined;
  return "must be an exact origin such as https://console.example: no path, no trailing slash, no default port, no '*'";
}

/** Mixed case must be the EIP-55 checksum, which catches a mistyped payee. */
function addressFault(text: string): string | undefined {
  if (text === ZERO_ADDRESS) return 'must not be the zero address: the money would be lost';
  if (text === text.toLowerCase() || text === checksumAddress(text)) return undefined;
  return 'must have a valid checksum (EIP-55), or be all lower case; a digit or a letter case is wrong';
}

/** Undefined also for a text without an address: an empty file blocks no payer. */
function payersFault(text: string): string | undefined {
  const lines = payersIn(text);
  const wrong = lines.findIndex((line) => line !== '' && !isAddress(line));
  if (wrong === -1) return undefined;
  const where = lines.length === 1 ? '' : `line ${wrong + 1} `;
  return `${where}must be an address: 0x and 40 hexadecimal digits, in one case or with a valid checksum (EIP-55)`;
}

/** The lines of a text without their comments. */
function payersIn(text: string): readonly string[] {
  return text.split('\n').map((line) => line.replace(/#.*/, '').trim());
}

function isAddress(line: string): boolean {
  if (!/^0x[0-9a-fA-F]{40}$/.test(line)) return false;
  const digits = line.slice(2);
  return digits === digits.toUpperCase() || addressFault(line) === undefined;
}

/** In lower case, as they are compared. */
function blockedPayers({ payments }: ConfigDocument, problems: ProblemList): ReadonlySet<string> {
  if (!problems.sound('payments.blockedPayers')) return new Set();
  const lines = [payments.blockedPayers].flat().flatMap(payersIn);
  return new Set(lines.filter((line) => line !== '').map((line) => line.toLowerCase()));
}

/** Refuses a gateway as its own backend: each call would call it again. */
function checkBackend(baseUrl: string, ports: readonly number[], publicBaseUrl: string, problems: ProblemList): void {
  const { origin, port, protocol } = new URL(baseUrl);
  const own = isLoopbackUrl(baseUrl) && ports.includes(Number(port || (protocol === 'https:' ? 443 : 80)));
  if (own || origin === new URL(publicBaseUrl).origin)
    problems.add('backend.baseUrl', "must be your service's address: this one is the gateway's own");
}

/**
 * Whether the public URL is on loopback, the store SQLite, and no public network has payments.
 * A refused section counts as fitting.
 */
function isTrial(
  { merchant }: ConfigDocument,
  engine: Engine | undefined,
  entries: readonly X402Config[] | undefined,
  problems: ProblemList,
): boolean {
  if (!problems.sound('merchant.publicBaseUrl') || engine === undefined) return true;
  const isMoney = entries?.some(({ mode }) => mode !== 'local') === true;
  return !isMoney && engine === 'sqlite' && isLoopbackUrl(merchant.publicBaseUrl);
}

interface Payments {
  /** The entries of `payments.x402`; undefined where one of them was refused. */
  readonly entries: readonly X402Config[] | undefined;
  readonly assets: PriceAssets;
}

function derivePayments(
  document: ConfigDocument,
  engine: Engine | undefined,
  fromFile: ReadonlySet<string>,
  problems: ProblemList,
): Payments {
  if (!problems.readable('payments.x402')) return { entries: undefined, assets: { kind: 'unsound' } };
  const entries = entriesOf(document.payments.x402);
  return {
    entries: deriveEntries(entries, engine, fromFile, problems),
    assets: priceAssets(entries, problems),
  };
}

function deriveResources(
  document: ConfigDocument,
  surroundings: ResourceSurroundings,
  problems: ProblemList,
): readonly ResourceConfig[] {
  const listed: unknown = document.resources;
  if (listed === undefined || (problems.sound('resources') && Object.keys(document.resources ?? {}).length === 0)) {
    // A checkout is something to sell as well.
    if (!document.protocols.acp.enabled)
      problems.add('resources', `${listed === undefined ? 'is missing:' : 'must be'} ${RESOURCES.description}`);
    return [];
  }
  if (listed === null || typeof listed !== 'object' || Array.isArray(listed)) return [];
  const resources = Object.entries(document.resources ?? {})
    .filter(([id, resource]) => problems.readable(memberPath('resources', toldName(id, resource === null))))
    .map(([id, resource]) => deriveResource(id, resource, surroundings, problems))
    .filter((resource) => resource !== undefined);
  for (const { path, message } of [...addressOverlaps(resources), ...quotesOfSales(resources)])
    problems.add(path, message);
  return resources;
}

/** Paths of the gateway itself: no adapter may be mounted there. */
const OWN_PATHS: readonly string[] = [
  ...['/api', '/console'],
  ...['/health', '/ready', '/metrics', '/drain', '/release', '/app-probe'],
];

/** `merchant`: the public URL without trailing slash, because paths are appended to it. */
function deriveMerchant({ merchant }: ConfigDocument, problems: ProblemList): GatewayConfig['merchant'] | undefined {
  if (!problems.sound('merchant')) return undefined;
  const [publicBaseUrl, ...formerBaseUrls] = [merchant.publicBaseUrl, ...merchant.formerBaseUrls].map((url) =>
    url.replace(/\/+$/, ''),
  );
  return { ...merchant, publicBaseUrl: publicBaseUrl ?? '', formerBaseUrls };
}

/** The name of a service in the official schema (x402 2.2). */
const SERVICE_NAME = /^[ -~]{1,32}$/;

/** Another name is no mistake: offers go without it. */
function labelsOf({ name, iconUrl }: GatewayConfig['merchant']): ResourceSurroundings['labels'] {
  return {
    ...(SERVICE_NAME.test(name) ? { serviceName: name } : {}),
    ...(iconUrl === undefined ? {} : { iconUrl }),
  };
}

/** `server`: tokens in order of use, origins and hosts in lower case, as they are compared. */
function deriveServer({ server }: ConfigDocument, problems: ProblemList): GatewayConfig['server'] | undefined {
  if (!problems.sound('server')) return undefined;
  const { adminToken = '', adminTokenNext = '', ...others } = server;
  const rotation = adminToken === '' ? 'next alone' : adminToken === adminTokenNext ? 'same twice' : undefined;
  return {
    ...others,
    adminTokens: [...new Set([adminToken, adminTokenNext])].filter((token) => token !== ''),
    rotation: adminTokenNext === '' ? undefined : rotation,
    allowedOrigins: server.allowedOrigins.map((origin) => origin.toLowerCase()),
    allowedHosts: server.allowedHosts?.map((host) => host.toLowerCase()),
  };
}

/** `management`: another port than the agents', which the Service exposes. */
function deriveManagement(
  { server, management }: ConfigDocument,
  problems: ProblemList,
): GatewayConfig['management'] | undefined {
  if (!problems.sound('management', 'server.port')) return undefined;
  if (management.port !== 0 && management.port === server.port)
    problems.add('management.port', 'must differ from server.port');
  return management;
}

/** `protocols`: http unless switched off, the others only when switched on. */
function deriveProtocols(
  document: ConfigDocument,
  checkout: AcpSurroundings,
  problems: ProblemList,
): GatewayConfig['protocols'] | undefined {
  if (!problems.readable('protocols')) return undefined;
  checkCardKey(document, problems);
  const acp = deriveAcp(document, checkout, problems);
  checkMounts(document, problems);
  return problems.sound('protocols') && acp !== undefined ? { ...document.protocols, acp } : undefined;
}

/** The key that signs the agent card. */
function checkCardKey({ protocols }: ConfigDocument, problems: ProblemList): void {
  const path = 'protocols.a2a.signingKey';
  const pem = problems.sound(path) ? protocols.a2a.signingKey : undefined;
  const reading = pem === undefined ? undefined : readSigningKey(pem);
  if (reading?.ok === false) problems.add(path, reading.message);
}

/** Adapters that offer resources and are switched on; undefined where that cannot be told. */
function enabledChannels({ protocols }: ConfigDocument, problems: ProblemList): ReadonlySet<Channel> | undefined {
  const names = ['http', 'mcp', 'a2a'] as const;
  if (!problems.sound(...names.map((name) => `protocols.${name}.enabled`))) return undefined;
  return new Set(names.filter((name) => protocols[name].enabled));
}

/** Each adapter has its paths to itself, and none of the gateway's own. */
function checkMounts({ protocols }: ConfigDocument, problems: ProblemList): void {
  const taken = new Map<string, string>();
  for (const name of ['mcp', 'a2a', 'acp'] as const) {
    const path = `protocols.${name}.mountPath`;
    if (!problems.sound(path, `protocols.${name}.enabled`)) continue;
    const { mountPath, enabled } = protocols[name];
    if (OWN_PATHS.some((own) => within(mountPath, own)))
      problems.add(path, `must not be one of the gateway's own paths: ${OWN_PATHS.join(', ')}`);
    const other = taken.get(mountPath);
    if (enabled && other !== undefined) problems.add(path, `must differ from protocols.${other}.mountPath`);
    // Everything below the checkout's mount answers in the format of ACP alone.
    for (const [mounted, adapter] of taken)
      if (enabled && name === 'acp' && (within(mountPath, mounted) || within(mounted, mountPath)))
        problems.add(path, `must not be above or below protocols.${adapter}.mountPath`);
    if (enabled) taken.set(mountPath, name);
  }
}

function within(path: string, parent: string): boolean {
  return path === parent || path.startsWith(`${parent}/`);
}

/** `limits`: without `rate` there is no rate limit. A burst defaults to two seconds' worth. */
function deriveLimits({ limits }: ConfigDocument): GatewayConfig['limits'] {
  const { unpaidWork, rate } = limits;
  const { windowSeconds, ...amounts } = unpaidWork;
  return {
    ...limits,
    unpaidWork: { ...amounts, windowMs: windowSeconds * 1_000 },
    rate: rate && { perSecond: rate.perSecond, burst: rate.burst ?? 2 * rate.perSecond },
  };
}
