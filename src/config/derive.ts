/** Turns the validated document into the typed configuration, section by section. */

import schema from '../../schemas/config.schema.json' with { type: 'json' };
import type { X402Config } from '../payments/x402/wire/settings.ts';
import { memberPath, type ProblemList } from '../problems/problem.ts';
import { PUBLISHED_NAMES } from '../resources/published.ts';
import type { ResourceConfig } from '../resources/settings.ts';
import type { GatewayConfig } from './document/config.ts';
import type { ConfigDocument } from './document/document.ts';
import { isLoopbackUrl } from './document/endpoints.ts';
import { checkFields } from './document/fields.ts';
import { toldName } from './document/member.ts';
import { addressOverlaps } from './sections/address-overlaps.ts';
import { deriveAp2, mandateSetting } from './sections/ap2.ts';
import { deriveBackend } from './sections/backend.ts';
import {
  deriveLimits,
  deriveManagement,
  deriveMerchant,
  deriveProtocols,
  deriveServer,
  enabledChannels,
} from './sections/listeners.ts';
import { type PriceAsset, priceAsset } from './sections/pricing.ts';
import { keyUses } from './sections/published-keys.ts';
import { deriveResource, type ResourceSurroundings } from './sections/resources.ts';
import { SEALING_KEYS } from './sections/sealing.ts';
import { deriveSigning } from './sections/signing.ts';
import { deriveStorage, type Engine, engineOf, storageKeys } from './sections/storage.ts';
import { deriveX402 } from './sections/x402.ts';

const RESOURCES = schema.properties.resources;
const KEY_PATH = 'payments.x402.facilitator.privateKey';

/**
 * Applies each rule where what it reads was accepted, so that one run names every problem.
 * `fromFile`: paths whose value came out of a mounted file.
 * @throws ConfigError
 */
export function deriveConfig(
  document: ConfigDocument,
  fromFile: ReadonlySet<string>,
  problems: ProblemList,
): GatewayConfig {
  checkFields(document, problems);
  const engine = engineOf(document, problems);
  const merchant = deriveMerchant(document, problems);
  const server = deriveServer(document, problems);
  const management = deriveManagement(document, problems);
  const backend = deriveBackend(document, problems);
  if (merchant && server && management && backend)
    checkBackend(document.backend.baseUrl, [server.port, management.port], merchant.publicBaseUrl, problems);
  const keys = storageKeys(document, problems);
  const storage = deriveStorage(document, keys, problems);
  const payments = derivePayments(document, engine, fromFile, problems);
  const trial = isTrial(document, engine, payments.x402, problems);
  const protocols = deriveProtocols(document, { backend, trial, sealing: keys }, problems);
  const uses = keyUses(document, problems);
  const signing = deriveSigning(document, uses, problems);
  const ap2 = deriveAp2(document, merchant, payments.asset, uses, problems);
  const surroundings: ResourceSurroundings = {
    publicBaseUrl: merchant?.publicBaseUrl ?? '',
    passes: backend?.passthrough !== undefined,
    backend: backend ?? { origin: '', pathPrefix: '', headers: {} },
    enabled: enabledChannels(document, problems),
    asset: payments.asset,
    mandates: mandateSetting(document, ap2, problems),
    maxTimeoutSeconds: payments.x402?.maxTimeoutSeconds,
    seals: keys.length > 0 || !problems.sound(SEALING_KEYS),
  };
  const resources = deriveResources(document, surroundings, problems);
  problems.throwIfAny();
  if (!(merchant && server && management && backend && storage && protocols))
    throw new Error('a section is missing although nothing was refused');
  return {
    merchant,
    server,
    management,
    backend,
    storage,
    protocols,
    x402: payments.x402,
    authorization: { ap2 },
    signing,
    resources,
    publish: new Set(document.publish ?? (backend.passthrough === undefined ? PUBLISHED_NAMES : [])),
    limits: deriveLimits(document),
  };
}

/** Refuses a gateway as its own backend: each call would call it again. */
function checkBackend(baseUrl: string, ports: readonly number[], publicBaseUrl: string, problems: ProblemList): void {
  const { origin, port, protocol } = new URL(baseUrl);
  const own = isLoopbackUrl(baseUrl) && ports.includes(Number(port || (protocol === 'https:' ? 443 : 80)));
  if (own || origin === new URL(publicBaseUrl).origin)
    problems.add('backend.baseUrl', "must be your service's address: this one is the gateway's own");
}

/**
 * Whether only this machine can reach the gateway, and no real money flows; true, too, where a
 * section that decides it was refused.
 */
function isTrial(
  { merchant }: ConfigDocument,
  engine: Engine | undefined,
  x402: X402Config | undefined,
  problems: ProblemList,
): boolean {
  if (!problems.sound('merchant.publicBaseUrl') || engine === undefined) return true;
  const money = x402 !== undefined && x402.mode !== 'local';
  return !money && engine === 'sqlite' && isLoopbackUrl(merchant.publicBaseUrl);
}

interface Payments {
  readonly x402: X402Config | undefined;
  readonly asset: PriceAsset;
}

function derivePayments(
  document: ConfigDocument,
  engine: Engine | undefined,
  fromFile: ReadonlySet<string>,
  problems: ProblemList,
): Payments {
  if (!problems.readable('payments.x402')) return { x402: undefined, asset: { kind: 'unsound' } };
  const x402 = document.payments?.x402;
  if (x402 === undefined) return { x402: undefined, asset: { kind: 'absent' } };
  const derived = deriveX402(x402, { engine, keyFromFile: fromFile.has(KEY_PATH) }, problems);
  return { x402: derived, asset: priceAsset(x402, problems) };
}

function deriveResources(
  document: ConfigDocument,
  surroundings: ResourceSurroundings,
  problems: ProblemList,
): readonly ResourceConfig[] {
  const listed: unknown = document.resources;
  if (listed === undefined || (problems.sound('resources') && Object.keys(document.resources ?? {}).length === 0)) {
    // A checkout is something to sell as well.
    if (document.protocols?.acp?.enabled !== true)
      problems.add('resources', `${listed === undefined ? 'is missing:' : 'must be'} ${RESOURCES.description}`);
    return [];
  }
  if (listed === null || typeof listed !== 'object' || Array.isArray(listed)) return [];
  const resources = Object.entries(document.resources ?? {})
    .filter(([id, resource]) => problems.readable(memberPath('resources', toldName(id, resource === null))))
    .map(([id, resource]) => deriveResource(id, resource, surroundings, problems))
    .filter((resource) => resource !== undefined);
  for (const { path, message } of addressOverlaps(resources)) problems.add(path, message);
  return resources;
}
