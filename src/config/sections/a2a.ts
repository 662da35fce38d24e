/** `protocols.a2a`: the texts of the agent card, and the key that signs it. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import { readSigningKey } from '../../crypto/signing-key.ts';
import type { ProblemList } from '../../problems/problem.ts';
import type { GatewayConfig } from '../document/config.ts';
import type { ConfigDocument } from '../document/document.ts';

const A2A = schema.properties.protocols.properties.a2a.properties;
/** As in the schema; a constant because its `default` is typed as any text. */
const DEFAULT_PROFILE = 'gateway';
const PATH = 'protocols.a2a';

export function deriveA2a(
  document: ConfigDocument,
  problems: ProblemList,
): GatewayConfig['protocols']['a2a'] | undefined {
  if (!problems.readable(PATH)) return undefined;
  const { enabled, mountPath, errorProfile, description, provider, documentationUrl, iconUrl, signingKey } =
    document.protocols?.a2a ?? {};
  const key =
    signingKey === undefined || !problems.sound(`${PATH}.signingKey`) ? undefined : readSigningKey(signingKey);
  if (key?.ok === false) problems.add(`${PATH}.signingKey`, key.message);
  if (!problems.sound(PATH)) return undefined;
  return {
    enabled: enabled ?? A2A.enabled.default,
    mountPath: mountPath ?? A2A.mountPath.default,
    errorProfile: errorProfile ?? DEFAULT_PROFILE,
    description,
    provider,
    documentationUrl,
    iconUrl,
    signingKey,
  };
}
