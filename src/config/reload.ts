/**
 * A configuration that changes while the gateway runs: the files that it is read from, the watch
 * over them, and the differences between two documents. The schema marks with `x-reload: live` the
 * settings that a running gateway takes over.
 */

import { createHash } from 'node:crypto';
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { memberPath } from '../problems/problem.ts';
import { readRedisUrl } from '../store/redis/url.ts';
import type { ConfigDocument } from './document/document.ts';
import { isMapping, type Step, schemaAt } from './document/member.ts';
import { configPath, type Environment } from './document/parse.ts';
import { type ConfigSource, OVERRIDES } from './load.ts';

/** `${file:/path}`, and the variables that a placeholder names. */
const FILE = /\$\{file:(\/[^}]*)\}/g;
const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}/g;

/** The files that a configuration is read from now. */
interface Sources {
  /** Absolute paths, the configuration file first. */
  readonly files: readonly string[];
  /** Equal for the same files and contents; an unreadable file differs from an empty one. */
  readonly digest: string;
}

/** Reads all files once. Names of files are taken from the text: it may be no valid document. */
export function readSources({ path, env }: ConfigSource): Sources {
  const file = resolve(configPath(path, env));
  const text = contentOf(file);
  const mounted = text === undefined ? [] : mountedFiles(text.toString('utf8'), env);
  const files = [...new Set([file, ...mounted.map((name) => resolve(name))])];
  const hash = createHash('sha256');
  for (const name of files) {
    const content = name === file ? text : contentOf(name);
    hash.update(`${name}\0${content?.length ?? -1}\0`).update(content ?? '');
  }
  return { files, digest: hash.digest('base64url') };
}

function mountedFiles(text: string, env: Environment): readonly string[] {
  const named = [...text.matchAll(FILE)].map(([, name = '']) => name);
  const variables = [
    ...OVERRIDES.map(({ name }) => name),
    ...[...text.matchAll(VARIABLE)].map(([, name = '']) => name),
  ];
  return [...named, ...variables.map((name) => env[`${name}_FILE`] ?? '')].filter((name) => name !== '');
}

function contentOf(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

/** Between two looks without an event, milliseconds: not every file system reports changes. */
export const POLL_MS = 10_000;
/** How long events of one change are gathered: a mounted volume makes several, milliseconds. */
const GATHER_MS = 100;

/**
 * Calls `look` after changes in the directories, and each `pollMs`. No file is watched: the kubelet
 * replaces the directory that the files link into, and a watch on a file would end with the first
 * of these changes.
 */
export function watchDirectories(look: () => void, pollMs: number = POLL_MS) {
  const watches = new Map<string, FSWatcher>();
  let gathering: NodeJS.Timeout | undefined;
  const soon = (): void => {
    gathering ??= setTimeout(() => {
      gathering = undefined;
      look();
    }, GATHER_MS).unref();
  };
  const poll = setInterval(look, pollMs).unref();
  const drop = (directory: string): void => {
    watches.get(directory)?.close();
    watches.delete(directory);
  };
  const add = (directory: string): void => {
    try {
      const watching = watch(directory, { persistent: false }, soon);
      // The directory is gone: the poll goes on, and `follow` tries it again.
      watching.on('error', () => drop(directory));
      watches.set(directory, watching);
    } catch {
      // The poll sees its files all the same.
    }
  };
  return {
    /** Watches the directories of these files from now on. */
    follow(files: readonly string[]): void {
      const wanted = new Set(files.map((file) => dirname(file)));
      for (const directory of watches.keys()) if (!wanted.has(directory)) drop(directory);
      for (const directory of wanted) if (!watches.has(directory)) add(directory);
    },
    close(): void {
      clearInterval(poll);
      clearTimeout(gathering);
      for (const directory of [...watches.keys()]) drop(directory);
    },
  };
}

/** Keys that need a restart unless only their login changes, and the function that removes it. */
const BUT_FOR_LOGINS: Readonly<Record<string, (value: unknown) => unknown>> = {
  'storage.redis.url': withoutRedisLogin,
  'payments.x402.facilitator.fallbacks': withoutLogins,
};
/** An entry, or a list of them. */
export const ENTRIES = 'payments.x402';

/** The changed settings, as paths of the document; never a value. */
interface Changes {
  readonly changed: readonly string[];
  /** Paths of `changed` that a running gateway cannot take over. */
  readonly restart: readonly string[];
}

/** Compares two documents that were accepted. */
export function changesBetween(before: ConfigDocument, after: ConfigDocument): Changes {
  const found = differing([], before, after, false);
  return {
    changed: found.map(({ path }) => path),
    restart: found.filter(({ isLive }) => !isLive).map(({ path }) => path),
  };
}

/**
 * The paths at which two values differ. Lists are compared as a whole, but for entries that are of
 * the same tokens in the same order.
 */
function differing(
  steps: readonly Step[],
  one: unknown,
  other: unknown,
  isAboveLive: boolean,
): readonly { readonly path: string; readonly isLive: boolean }[] {
  if (isDeepStrictEqual(one, other)) return [];
  const isLive = isAboveLive || schemaAt(steps)?.['x-reload'] === 'live';
  if (isMapping(one) && isMapping(other))
    return [...new Set([...Object.keys(one), ...Object.keys(other)])].flatMap((name) =>
      differing([...steps, name], one[name], other[name], isLive),
    );
  const path = steps.reduce<string>(memberPath, '');
  if (path === ENTRIES && areOfSameTokens(one, other))
    return [other].flat().flatMap((entry: unknown, index) => {
      const at = Array.isArray(other) ? [...steps, index] : steps;
      return differing(at, [one].flat()[index], entry, isLive);
    });
  const part = BUT_FOR_LOGINS[path.replace(/^payments\.x402\[\d\]/, ENTRIES)];
  return [{ path, isLive: isLive || (part !== undefined && isDeepStrictEqual(part(one), part(other))) }];
}

function areOfSameTokens(one: unknown, other: unknown): boolean {
  const [before, after] = [one, other].map((entries) =>
    [entries].flat().map((entry: unknown) => (isMapping(entry) ? [entry['network'], entry['asset']] : undefined)),
  );
  return one !== undefined && other !== undefined && isDeepStrictEqual(before, after);
}

function withoutRedisLogin(url: unknown): unknown {
  const reading = typeof url === 'string' ? readRedisUrl(url) : undefined;
  if (reading?.ok !== true) return url;
  const { at, tls, db = 0 } = reading.url;
  return { at, tls, db };
}

function withoutLogins(fallbacks: unknown): unknown {
  return Array.isArray(fallbacks) ? fallbacks.map((one: unknown) => (isMapping(one) ? one['url'] : one)) : fallbacks;
}
