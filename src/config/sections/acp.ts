import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import type { AcpConfig, AcpDiscoverySettings } from '../../checkouts/settings.ts';
import type { SealingKey } from '../../crypto/seal.ts';
import type { ProblemList } from '../../problems/problem.ts';
import type { ConfigDocument } from '../document/document.ts';
import { publicUrlFault } from '../document/endpoints.ts';
import { SecretUses } from '../document/secret-uses.ts';
import { acpBackend } from './acp-backend.ts';
import { acpClients } from './acp-clients.ts';
import { acpIdempotency } from './acp-idempotency.ts';
import type { BackendBase } from './backend.ts';

const ACP = schema.properties.protocols.properties.acp.properties;
const AT = 'protocols.acp';

/** What the checkout adapter is derived from besides its own section. */
export interface AcpSurroundings {
  /** Undefined when that section was refused. */
  readonly backend: BackendBase | undefined;
  /** Whether the shop can be met by nobody outside this machine: then a short token is only warned of. */
  readonly trial: boolean;
  /** The ring of the storage; empty where there is none. */
  readonly sealing: readonly SealingKey[];
}

/** `protocols.acp` (acp 13.7). Off, nothing of it is required; on, everything that is missing is named at once. */
export function deriveAcp(
  document: ConfigDocument,
  { backend, trial, sealing }: AcpSurroundings,
  problems: ProblemList,
): AcpConfig {
  const acp = document.protocols?.acp ?? {};
  const mountPath = acp.mountPath ?? ACP.mountPath.default;
  if (!(acp.enabled ?? ACP.enabled.default)) return { enabled: false, mountPath };
  const uses = new SecretUses(problems);
  if (problems.sound('server')) noteOperatorTokens(document, uses);
  const clients = acpClients(acp.auth, trial, uses, problems);
  const idempotency = acpIdempotency(acp, sealing, uses, problems);
  const merchant = backend && acpBackend(acp.backend, backend, problems);
  const discovery = discoveryOf(acp.discovery, problems);
  // A problem was added for whatever is not there.
  if (idempotency === undefined || merchant === undefined) return { enabled: false, mountPath };
  return {
    enabled: true,
    mountPath,
    clients,
    backend: merchant,
    idempotency,
    discovery,
    oldKeys: acp.idempotency?.keys !== undefined,
    maxInFlight: acp.limits?.maxInFlight ?? ACP.limits.properties.maxInFlight.default,
    acceptLineItemQuantity: acp.acceptLineItemQuantity ?? ACP.acceptLineItemQuantity.default,
    strictSemantics: acp.strictSemantics ?? ACP.strictSemantics.default,
    authenticationErrors: acp.authenticationErrors ?? ACP.authenticationErrors.default,
  };
}

/** Whoever may check out must not be able to stop the shop with the same words. */
function noteOperatorTokens({ server }: ConfigDocument, uses: SecretUses): void {
  const { adminToken = '', adminTokenNext = '' } = server ?? {};
  if (adminToken !== '') uses.note('server.adminToken', adminToken);
  // The same token in both places is warned of elsewhere.
  if (adminTokenNext !== '' && adminTokenNext !== adminToken) uses.note('server.adminTokenNext', adminTokenNext);
}

function discoveryOf(discovery: Partial<AcpDiscoverySettings> = {}, problems: ProblemList): AcpDiscoverySettings {
  const { documentationUrl, supportedCurrencies, supportedLocales, interventionTypes } = discovery;
  const fault = documentationUrl === undefined ? undefined : publicUrlFault(documentationUrl);
  if (fault !== undefined) problems.add(`${AT}.discovery.documentationUrl`, fault);
  return { documentationUrl, supportedCurrencies, supportedLocales, interventionTypes };
}
