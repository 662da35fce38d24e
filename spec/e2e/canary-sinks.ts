/** Searches everything that a gateway wrote for planted secrets, in every spelling. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** A secret that was put somewhere, by what it is. */
export type Canaries = Readonly<Record<string, string>>;

/** What came out somewhere, by where. */
export type Sinks = Readonly<Record<string, string>>;

/** Where which secret was found in which sink, and in which spelling. */
export function found(canaries: Canaries, sinks: Sinks): readonly string[] {
  return Object.entries(sinks).flatMap(([sink, text]) =>
    Object.entries(canaries).flatMap(([name, secret]) =>
      [...spellings(secret)]
        .filter(([, spelled]) => text.includes(spelled))
        .map(([spelling]) => `${name} is in ${sink} (${spelling})`),
    ),
  );
}

/**
 * The ways in which a secret may be written: as it is, in JSON, percent-encoded, in hex, and in
 * base64 at each of its three offsets.
 */
function spellings(secret: string): ReadonlyMap<string, string> {
  const bytes = Buffer.from(secret);
  const base64 = [0, 1, 2].flatMap((before): (readonly [string, string])[] => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    // The first and last characters depend on what stands beside it.
    const core = whole.slice(before === 0 ? 0 : before + 1, -4);
    return [
      [`base64 at ${before}`, core],
      [`base64url at ${before}`, core.replaceAll('+', '-').replaceAll('/', '_')],
    ];
  });
  return new Map([
    ['as it is', secret],
    ['in lower case', secret.toLowerCase()],
    ['in JSON', JSON.stringify(secret).slice(1, -1)],
    ['percent-encoded', encodeURIComponent(secret)],
    ['in hex', bytes.toString('hex')],
    ...base64,
  ]);
}

/**
 * What stands in the files of a folder and of the folders in it, byte by byte: their names and
 * contents.
 */
export async function filesIn(folder: string): Promise<ReadonlyMap<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const contents = files.map(async ({ name, parentPath }) => {
    return [name, await readFile(join(parentPath, name), 'latin1')] as const;
  });
  return new Map(await Promise.all(contents));
}

/** A value in Redis, with the name of its key and its field: `key field value`, one a line. */
export async function everythingIn(socketPath: string, password: string): Promise<readonly string[]> {
  const redis = new Redis({ path: socketPath, password });
  try {
    const lines: string[] = [];
    let cursor = '0';
    do {
      const [next, keys] = await redis.scan(cursor, 'COUNT', 1_000);
      cursor = next;
      for (const key of keys)
        for (const [field, value] of await valuesOf(redis, key)) lines.push(`${key} ${field} ${value}`);
    } while (cursor !== '0');
    return lines;
  } finally {
    redis.disconnect();
  }
}

async function valuesOf(redis: Redis, key: string): Promise<readonly (readonly [string, string])[]> {
  const type = await redis.type(key);
  switch (type) {
    case 'string':
      return [['', (await redis.getBuffer(key))?.toString('latin1') ?? '']];
    case 'zset':
      return (await redis.zrange(key, '0', '-1')).map((member) => ['', member] as const);
    case 'stream':
      return (await redis.xrange(key, '-', '+')).map(([id, fields]) => [id, fields.join(' ')] as const);
    default:
      throw new Error(`nothing reads a ${type} here`);
  }
}
