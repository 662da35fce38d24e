/** `protocols.a2a`: the agent card is public, so its texts and links are checked. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import { readSigningKey } from '../../crypto/signing-key.ts';
import type { ProblemList } from '../../problems/problem.ts';
import { textFault } from '../../resources/schemas/text.ts';
import type { GatewayConfig } from '../document/config.ts';
import type { ConfigDocument } from '../document/document.ts';
import { publicUrlFault } from '../document/endpoints.ts';

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
  checkText('description', description, problems);
  checkText('provider.organization', provider?.organization, problems);
  checkUrl('provider.url', provider?.url, problems);
  checkUrl('documentationUrl', documentationUrl, problems);
  checkUrl('iconUrl', iconUrl, problems);
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

function checkText(name: string, text: string | undefined, problems: ProblemList): void {
  const fault = text === undefined || !problems.sound(`${PATH}.${name}`) ? undefined : textFault(text);
  if (fault !== undefined) problems.add(`${PATH}.${name}`, fault);
}

function checkUrl(name: string, text: string | undefined, problems: ProblemList): void {
  const fault = text === undefined || !problems.sound(`${PATH}.${name}`) ? undefined : publicUrlFault(text);
  if (fault !== undefined) problems.add(`${PATH}.${name}`, fault);
}
