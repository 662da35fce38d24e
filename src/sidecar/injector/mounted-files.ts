/** Reads mounted files and follows their changes; what was good stays until something better is. */

import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { dirname } from 'node:path';

/** A watch can miss a change, on network file systems any: so the files are looked at as well. */
const POLL_MS = 10_000;
/** The files of a pair may be written one after the other, milliseconds. */
const SETTLE_MS = 100;

/** What was read from the files last, as long as it was good. */
export interface Mounted<T> {
  current(): T;
  close(): void;
}

interface MountedParts<T> {
  readonly files: readonly string[];
  /** Throws when the contents, in the order of the files, are not good. */
  readonly read: (contents: readonly string[]) => T;
  readonly onChange: (value: T) => void;
  /** Called when a change is not good, once for each reason; the value before it stays. */
  readonly onRejected: (reason: unknown) => void;
  readonly pollMs?: number;
}

/**
 * Reads files and reads them again when they change. A kubelet changes mounted files by putting
 * another directory in place of the one that they link to, which a watch on a file does not see: so
 * their directories are watched.
 * @throws what reading throws, at first
 */
export function mountedFiles<T>({ files, read, onChange, onRejected, pollMs = POLL_MS }: MountedParts<T>): Mounted<T> {
  let seen = contentsOf(files);
  let value = read(seen);
  let settling: NodeJS.Timeout | undefined;
  let rejected: string | undefined;

  const look = (): void => {
    settling = undefined;
    try {
      const found = contentsOf(files);
      if (found.every((content, index) => content === seen[index])) return;
      // Noted before it is read: what is not good is not read at every look.
      seen = found;
      value = read(found);
      rejected = undefined;
      onChange(value);
    } catch (reason) {
      // A file that is gone is gone at every look.
      if (String(reason) !== rejected) onRejected(reason);
      rejected = String(reason);
    }
  };
  const soon = (): void => {
    settling ??= setTimeout(look, SETTLE_MS).unref();
  };
  const watches = [...new Set(files.map((file) => dirname(file)))].map((directory) => watched(directory, soon));
  const poll = setInterval(soon, pollMs).unref();
  return {
    current: () => value,
    close() {
      clearInterval(poll);
      clearTimeout(settling);
      for (const one of watches) one?.close();
    },
  };
}

function contentsOf(files: readonly string[]): readonly string[] {
  return files.map((file) => readFileSync(file, 'utf8'));
}

/** Undefined where the system watches no more: the poll remains. */
function watched(directory: string, onEvent: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, onEvent);
    watcher.on('error', () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}
