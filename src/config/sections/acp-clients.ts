import type { AcpClient } from '../../checkouts/settings.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { AcpDocument } from '../document/acp-document.ts';
import type { SecretUses } from '../document/secret-uses.ts';
import { STRONG_TOKEN_LENGTH } from '../document/strong-token.ts';

const AT = 'protocols.acp.auth';
/** The caller's id where there is one token and no list (acp 8). */
const ONLY_CLIENT = 'default';

/**
 * `auth`: who may call. Problems tell of missing, short and repeated tokens: one token is one caller, else a claim could belong to two.
 * `trial`: short tokens are let pass.
 */
export function acpClients(
  auth: AcpDocument['auth'],
  trial: boolean,
  uses: SecretUses,
  problems: ProblemList,
): readonly AcpClient[] {
  const { token = '', clients } = auth ?? {};
  if (token !== '' && clients !== undefined)
    problems.add(AT, 'must have exactly one of token and clients; ACP_TOKEN in the environment sets token');
  if (token === '' && clients === undefined)
    problems.add(AT, `is missing: { token: "\${ACP_TOKEN}" }, or clients: a list of { id, tokens }`);
  if (clients === undefined) {
    if (token !== '') checkToken(`${AT}.token`, token, trial, uses, problems);
    return [{ id: ONLY_CLIENT, tokens: [token] }];
  }
  const ids = new Set<string>();
  return clients.map(({ id, tokens }, index) => {
    const at = memberPath(`${AT}.clients`, index);
    if (ids.has(id)) problems.add(`${at}.id`, 'is there already; one client is one entry');
    ids.add(id);
    // The place of the next token may be empty between two changes.
    const given = tokens.filter((one) => one !== '');
    if (given.length === 0) problems.add(`${at}.tokens`, 'must have a token that is not empty');
    for (const [place, one] of tokens.entries())
      if (one !== '') checkToken(memberPath(`${at}.tokens`, place), one, trial, uses, problems);
    return { id, tokens: given };
  });
}

function checkToken(path: string, token: string, trial: boolean, uses: SecretUses, problems: ProblemList): void {
  if (!trial && token.length < STRONG_TOKEN_LENGTH)
    problems.add(
      path,
      `must have at least ${STRONG_TOKEN_LENGTH} characters; make it with: openssl rand -hex 32. Only a shop on this machine ` +
        'alone may have a shorter one: publicBaseUrl on loopback, storage.sqlite, and no public network',
    );
  uses.note(path, token);
}
