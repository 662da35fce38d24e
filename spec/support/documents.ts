import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import type { Redis } from 'ioredis';
import { VERSION_LENGTH } from '../../src/store/port/commit.ts';

type Content = Readonly<Record<string, unknown>>;

/** The content of a document in Redis; undefined: there is none. */
export async function documentAt(redis: Pick<Redis, 'get'>, key: string): Promise<Content | undefined> {
  const text = await redis.get(key);
  return text === null ? undefined : (JSON.parse(text.slice(VERSION_LENGTH)) as Content);
}

/** Changes a document in Redis as another process would: under another version. */
export async function changeDocument(redis: Pick<Redis, 'get' | 'set'>, key: string, change: Content): Promise<void> {
  const changed = JSON.stringify({ ...(await documentAt(redis, key)), ...change });
  await redis.set(key, randomBytes(VERSION_LENGTH / 2).toString('hex') + changed, 'KEEPTTL');
}

/** The same in the file of an embedded store. */
export function changePaymentInFile(
  path: string,
  payId: string,
  change: Content & { readonly dueAt: number },
): boolean {
  const db = new DatabaseSync(path);
  try {
    const changed = db
      .prepare('UPDATE documents SET version = ?, value = json_patch(value, ?) WHERE key = ?')
      .run(randomBytes(VERSION_LENGTH / 2).toString('hex'), JSON.stringify(change), `pay:${payId}`).changes;
    db.prepare("UPDATE entries SET score = ? WHERE list = 'open' AND member = ?").run(change.dueAt, payId);
    return changed === 1;
  } finally {
    db.close();
  }
}
