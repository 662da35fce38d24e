import schema from '../../schemas/config.schema.json' with { type: 'json' };
import type { IdempotencySettings, SealingKey } from '../checkouts/settings.ts';
import { memberPath, type ProblemList } from '../problems/problem.ts';
import type { AcpDocument, SealingKeyDocument } from './acp-document.ts';
import type { SecretUses } from './secret-uses.ts';

const ACP = schema.properties.protocols.properties.acp.properties;
const IDEMPOTENCY = ACP.idempotency.properties;
const AT = 'protocols.acp.idempotency';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** `idempotency`: undefined when the secret or the keys are missing; problems tell how to make them. */
export function acpIdempotency(
  {
    idempotency: document = {},
    sessionDays = ACP.sessionDays.default,
  }: Pick<AcpDocument, 'idempotency' | 'sessionDays'>,
  uses: SecretUses,
  problems: ProblemList,
): IdempotencySettings | undefined {
  const { secret, keys, retentionHours, merchant, sessionLock } = document;
  if (secret === undefined) problems.add(`${AT}.secret`, `is missing: ${IDEMPOTENCY.secret.description}`);
  else uses.note(`${AT}.secret`, secret);
  const [first, ...others] = sealingKeys(keys ?? [], uses, problems);
  if (first === undefined) {
    const example = `[{ id: k1, key: "\${file:/run/secrets/acp-key}" }]`;
    problems.add(`${AT}.keys`, `is missing: such as ${example}; make a key with: openssl rand -base64 32`);
  }
  if (secret === undefined || first === undefined) return undefined;
  return {
    retentionMs: (retentionHours ?? IDEMPOTENCY.retentionHours.default) * HOUR_MS,
    sessionKeepMs: sessionDays * DAY_MS,
    secret: Buffer.from(secret),
    keys: [first, ...others],
    merchant: merchant ?? 'derived-key',
    sessionLock: sessionLock ?? IDEMPOTENCY.sessionLock.default,
  };
}

/** Ids stand in what was sealed: two keys of one id could not be told apart. */
function sealingKeys(
  documents: readonly SealingKeyDocument[],
  uses: SecretUses,
  problems: ProblemList,
): readonly SealingKey[] {
  const ids = new Set<string>();
  return documents.map(({ id, key }, index) => {
    const at = memberPath(`${AT}.keys`, index);
    if (ids.has(id)) problems.add(`${at}.id`, 'is there already; each key needs a name of its own');
    ids.add(id);
    uses.note(`${at}.key`, key);
    // Both alphabets are read.
    return { id, key: Buffer.from(key, 'base64') };
  });
}
