/**
 * Mounted tokens that are being changed: a file may hold the new one and, on a second line, the one
 * before. Both are accepted.
 */

import type { ProblemList } from '../problems/problem.ts';
import { isMapping, type Mapping } from './document/member.ts';
import { ONLY_CLIENT } from './sections/acp.ts';

/**
 * The document with each pair of lines as the two tokens that the schema knows. Before validation:
 * what is no mapping or no text stays as it is, for the schema to refuse.
 */
export function withBothLines(document: unknown, problems: ProblemList): unknown {
  if (!isMapping(document)) return document;
  const { server, protocols } = document;
  return {
    ...document,
    ...(isMapping(server) ? { server: bothAdminTokens(server, problems) } : {}),
    ...(isMapping(protocols) && isMapping(protocols['acp'])
      ? { protocols: { ...protocols, acp: bothClientTokens(protocols['acp']) } }
      : {}),
  };
}

function bothAdminTokens(server: Mapping, problems: ProblemList): Mapping {
  const lines = linesOf(server['adminToken']);
  if (lines.length !== 2) return server;
  const [adminToken, adminTokenNext] = lines;
  if (server['adminTokenNext'] !== undefined && server['adminTokenNext'] !== '')
    problems.add('server.adminTokenNext', 'is a third token beside the two lines of server.adminToken; keep two');
  return { ...server, adminToken, adminTokenNext };
}

function bothClientTokens(acp: Mapping): Mapping {
  const { auth } = acp;
  if (!isMapping(auth)) return acp;
  const { token, ...rest } = auth;
  const lines = linesOf(token);
  if (lines.length === 2 && rest['clients'] === undefined)
    return { ...acp, auth: { ...rest, clients: [{ id: ONLY_CLIENT, tokens: lines }] } };
  if (!Array.isArray(rest['clients'])) return acp;
  const clients = rest['clients'].map((client: unknown) =>
    isMapping(client) && Array.isArray(client['tokens'])
      ? { ...client, tokens: client['tokens'].flatMap(tokensOf) }
      : client,
  );
  return { ...acp, auth: { ...auth, clients } };
}

function tokensOf(token: unknown): readonly unknown[] {
  const lines = linesOf(token);
  return lines.length === 2 ? lines : [token];
}

/** The lines of a text without the newline at its end; none for what is no text. */
function linesOf(value: unknown): readonly string[] {
  return typeof value === 'string' ? value.replace(/\r?\n$/, '').split(/\r?\n/) : [];
}
