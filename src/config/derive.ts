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
import { deriveLimits, deriveManagement, deriveMerchant, deriveProtocols, deriveServer } from './sections/listeners.ts';
import { type PriceAsset, priceAsset } from './sections/pricing.ts';
import { deriveResource, type ResourceSurroundings } from './sections/resources.ts';
import { deriveStorage } from './sections/storage.ts';
import { deriveX402 } from './sections/x402.ts';

const RESOURCES = schema.properties.resources;
const KEY_PATH = 'payments.x402.facilitator.privateKey';

/**
 * Skips sections that the schema refused and checks all others in full, so that one run names every
 * problem. `fromFile`: paths whose value came out of a mounted file.
 * @throws ConfigError
 */
export function deriveConfig(
  document: ConfigDocument,
  fromFile: ReadonlySet<string>,
  problems: ProblemList,
): GatewayConfig {
  const section = <T>(name: string, derive: (document: ConfigDocument, problems: ProblemList) => T): T | undefined =>
    problems.sound(name) ? derive(document, problems) : undefined;

  checkFields(document, problems);
  const merchant = section('merchant', deriveMerchant);
  const server = section('server', deriveServer);
  const management = section('management', deriveManagement);
  const backend = section('backend', deriveBackend);
  const storage = section('storage', deriveStorage);
  const payments = section('payments', () => derivePayments(document, fromFile, problems));
  const trial = isTrial(document, payments?.x402, problems);
  const checkout = { backend, trial, sealing: storage?.sealing ?? [] };
  const protocols = section('protocols', () => deriveProtocols(document, checkout, problems));
  const asset = payments?.asset ?? ({ kind: 'unsound' } as const);
  const ap2 = merchant && section('authorization', () => deriveAp2(document, merchant, asset, problems));
  const surroundings: ResourceSurroundings = {
    publicBaseUrl: merchant?.publicBaseUrl ?? '',
    passes: backend?.passthrough !== undefined,
    backend: backend ?? { origin: '', pathPrefix: '', headers: {} },
    protocols,
    asset,
    mandates: problems.sound('authorization') ? mandateSetting(document, ap2) : { kind: 'unsound' },
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
    x402: payments?.x402,
    authorization: { ap2 },
    resources,
    publish: new Set(document.publish ?? (backend.passthrough === undefined ? PUBLISHED_NAMES : [])),
    limits: deriveLimits(document),
    processes: 1,
  };
}

/**
 * Whether only this machine can reach the gateway, and no real money flows; true, too, where a
 * section that decides it was refused.
 */
function isTrial({ merchant, storage }: ConfigDocument, x402: X402Config | undefined, problems: ProblemList): boolean {
  if (!problems.sound('merchant') || !problems.sound('storage')) return true;
  const money = x402 !== undefined && x402.mode !== 'local';
  return !money && storage.redis === undefined && isLoopbackUrl(merchant.publicBaseUrl);
}

interface Payments {
  readonly x402: X402Config | undefined;
  readonly asset: PriceAsset;
}

function derivePayments(document: ConfigDocument, fromFile: ReadonlySet<string>, problems: ProblemList): Payments {
  const x402 = document.payments?.x402;
  if (x402 === undefined) return { x402: undefined, asset: { kind: 'absent' } };
  const facts = {
    redis: document.storage?.redis !== undefined,
    sqlite: document.storage?.sqlite !== undefined,
    keyFromFile: fromFile.has(KEY_PATH),
  };
  return { x402: deriveX402(x402, facts, problems), asset: priceAsset(x402) };
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
    .filter(([id]) => problems.sound(memberPath('resources', toldName(id, document.resources?.[id] === null))))
    .map(([id, resource]) => deriveResource(id, resource, surroundings, problems))
    .filter((resource) => resource !== undefined);
  for (const { path, message } of addressOverlaps(resources)) problems.add(path, message);
  return resources;
}
