import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import type { IdempotencySettings } from '../../checkouts/settings.ts';
import type { SealingKey } from '../../crypto/seal.ts';
import type { ProblemList } from '../../problems/problem.ts';
import type { AcpDocument } from '../document/acp-document.ts';
import type { SecretUses } from '../document/secret-uses.ts';
import { checkoutRing, OLD_SEALING_KEYS, sealingKeys } from './sealing.ts';

const ACP = schema.properties.protocols.properties.acp.properties;
const IDEMPOTENCY = ACP.idempotency.properties;
const AT = 'protocols.acp.idempotency';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** `idempotency`: undefined when the secret or the keys are missing; problems tell how to make them. `sealing`: the ring of the storage. */
export function acpIdempotency(
  {
    idempotency: document = {},
    sessionDays = ACP.sessionDays.default,
  }: Pick<AcpDocument, 'idempotency' | 'sessionDays'>,
  sealing: readonly SealingKey[],
  uses: SecretUses,
  problems: ProblemList,
): IdempotencySettings | undefined {
  const { secret, keys, retentionHours, merchant, sessionLock } = document;
  if (secret === undefined) problems.add(`${AT}.secret`, `is missing: ${IDEMPOTENCY.secret.description}`);
  else uses.note(`${AT}.secret`, secret);
  const ring = checkoutRing(sealing, sealingKeys(keys ?? [], OLD_SEALING_KEYS, problems), uses, problems);
  if (secret === undefined || ring === undefined) return undefined;
  return {
    retentionMs: (retentionHours ?? IDEMPOTENCY.retentionHours.default) * HOUR_MS,
    sessionKeepMs: sessionDays * DAY_MS,
    secret: Buffer.from(secret),
    keys: ring,
    merchant: merchant ?? 'derived-key',
    sessionLock: sessionLock ?? IDEMPOTENCY.sessionLock.default,
  };
}
