/** Reads a list of a gateway page by page, newest first. */

import { UnavailableError } from './exit-code.ts';
import type { GatewayClient } from './gateway-client.ts';

/** Most entries that a gateway gives at once. */
const PAGE = 500;

/** What is read of a list. */
interface Reading<Entry> {
  readonly path: '/api/receipts' | '/api/events';
  readonly query: Readonly<Record<string, string>>;
  readonly limit: number;
  /** False for the first entry that is too old. */
  readonly isWanted?: (entry: Entry) => boolean;
}

/** The entries, and where older ones that were wanted as well begin. */
interface ReadEntries<Entry> {
  readonly entries: readonly Entry[];
  readonly nextCursor?: string;
}

/** @throws what the client throws */
export async function readList<Entry extends { readonly id: string }>(
  client: GatewayClient,
  { path, query, limit, isWanted = () => true }: Reading<Entry>,
): Promise<ReadEntries<Entry>> {
  const entries: Entry[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.list(path, {
      ...query,
      limit: String(Math.min(PAGE, limit - entries.length)),
      ...(cursor === undefined ? {} : { cursor }),
    });
    const listed = entriesOf<Entry>(page[path.slice('/api/'.length)], path);
    const old = listed.findIndex((entry) => !isWanted(entry));
    entries.push(...(old === -1 ? listed : listed.slice(0, old)));
    const next = page['nextCursor'];
    if (next === cursor && next !== undefined) throw new UnavailableError(`${path} leads back to where it was`);
    cursor = old === -1 && typeof next === 'string' ? next : undefined;
  } while (cursor !== undefined && entries.length < limit);
  return { entries, ...(cursor === undefined ? {} : { nextCursor: cursor }) };
}

/** Of each entry only its id is certain: a gateway of another release may leave members out. */
function entriesOf<Entry>(listed: unknown, path: string): readonly Entry[] {
  const isEntry = (entry: unknown): entry is Entry =>
    typeof entry === 'object' && entry !== null && 'id' in entry && typeof entry.id === 'string';
  if (Array.isArray(listed) && listed.every(isEntry)) return listed;
  throw new UnavailableError(`${path} is not answered as a gateway does`);
}
