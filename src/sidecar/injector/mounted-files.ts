/** Reads mounted files and follows their changes; what was good stays until something better is. */

import { readFileSync } from 'node:fs';
import { watchDirectories } from '../../config/watch.ts';

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
 * Reads files and reads them again when they change.
 * @throws what reading throws, at first
 */
export function mountedFiles<T>({ files, read, onChange, onRejected, pollMs }: MountedParts<T>): Mounted<T> {
  let seen = contentsOf(files);
  let value = read(seen);
  let rejected: string | undefined;

  const look = (): void => {
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
  const watch = watchDirectories(look, pollMs);
  watch.follow(files);
  return {
    current: () => value,
    close: () => watch.close(),
  };
}

function contentsOf(files: readonly string[]): readonly string[] {
  return files.map((file) => readFileSync(file, 'utf8'));
}
