/** Notices that a file of the configuration may have changed; config/sources.ts tells whether. */

import { type FSWatcher, watch } from 'node:fs';
import { dirname } from 'node:path';

/** Between two looks without an event, milliseconds: not every file system reports changes. */
export const POLL_MS = 10_000;
/** How long events of one change are gathered: a mounted volume makes several, milliseconds. */
const GATHER_MS = 100;

/**
 * Calls `look` after changes in the directories, and now and then without one. Not the files are
 * watched: the kubelet puts a new directory in the place of the one that they are links into, and a
 * watch on a file ends with the first of these changes.
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
