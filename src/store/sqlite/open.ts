/** Opens the embedded store, for one process. */

import type { RegisterEpoch } from '../../mandates/register/register.ts';
import type { Store } from '../documents/store.ts';
import { storeOver } from '../documents/store-over.ts';
import type { StoreLimits } from '../port/settings.ts';
import { sqliteCommits } from './commits.ts';
import { openDatabase } from './database.ts';
import { appendEvents, sqliteFeed } from './feed.ts';

/**
 * `path`: a file, whose directory is created, or `:memory:`. `now`: the store's clock,
 * milliseconds. `epoch`: what an empty register begins with, by default now. `log` hears of another
 * process that has the file.
 * @throws Error when the file cannot be used, is not ours, or is of another release
 */
export function openSqliteStore(options: {
  readonly path: string;
  readonly limits: StoreLimits;
  readonly now?: () => number;
  readonly epoch?: RegisterEpoch;
  readonly log?: { warn(fields: object, message: string): void } | undefined;
}): Store {
  const { path, limits, now = Date.now, log, epoch } = options;
  const warn =
    log && (() => log.warn({ path }, 'another process has this database open; several gateways need storage.redis'));
  const database = openDatabase(path, now, warn);
  const store = storeOver(
    {
      name: 'sqlite',
      commits: sqliteCommits(database, now, appendEvents(database, limits)),
      feed: sqliteFeed(database),
      giveBack: database.giveBack,
      close: async () => database.close(),
    },
    limits,
    { epoch, log, unanswered: 'unwritable' },
  );
  // The epoch begins before the first checkout is issued.
  void store.check();
  return store;
}
