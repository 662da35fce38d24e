/** The checks of a store in SQLite: the file can be written, and one process alone has it. */

import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { DeploymentMode } from '../../payments/x402/wire/settings.ts';
import { type Check, type Finding, failed, passed, skipped, warned } from './check.ts';

/** How long a write of a gateway is waited for, milliseconds. */
const BUSY_MS = 2_000;
/** Locks of Linux, of every process that this one can see. */
const LOCKS = '/proc/locks';
/** The byte of the index of the log that every open connection has locked (SQLite's WAL mode). */
const CONNECTION_BYTE = 128;
const PATH = 'storage.sqlite.path';

/**
 * @param mode undefined where nothing is paid
 * @param isServed whether a gateway answers at the address of this configuration
 */
export function checkSqlite(
  path: string,
  mode: DeploymentMode | undefined,
  isServed: () => Promise<boolean>,
): readonly Check[] {
  if (path === ':memory:') return [{ name: 'sqlite file', run: async () => inMemory(mode) }];
  return [
    { name: 'sqlite file', run: async () => writable(path) },
    { name: 'sqlite processes', needs: ['sqlite file'], run: async () => processesOf(path, await isServed()) },
  ];
}

function inMemory(mode: DeploymentMode | undefined): Finding {
  const message = `${PATH}: in memory, and gone with the process`;
  return mode === undefined || mode === 'local' ? passed(message) : warned(message, 'name a file on a volume');
}

/** Writes nothing: a transaction is begun and taken back. */
function writable(path: string): Finding {
  if (!existsSync(path)) return missingFile(path);
  try {
    // SQLite makes files of its own beside it.
    accessSync(dirname(path), constants.W_OK);
    const db = new DatabaseSync(path, { timeout: BUSY_MS });
    try {
      db.exec('BEGIN IMMEDIATE; ROLLBACK');
    } finally {
      db.close();
    }
    return passed(`${path} can be written`);
  } catch (thrown) {
    return failed(
      `${PATH}: ${path} cannot be written: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
      'let the user of the gateway write the file and its folder, or name another file',
    );
  }
}

function missingFile(path: string): Finding {
  let folder = dirname(resolve(path));
  while (!existsSync(folder)) folder = dirname(folder);
  try {
    accessSync(folder, constants.W_OK);
    if (!statSync(folder).isDirectory()) throw new Error(`${folder} is no folder`);
    return passed(`${path} is made at the first start`);
  } catch {
    return failed(`${PATH}: ${path} cannot be made in ${folder}`, 'let the user of the gateway write this folder');
  }
}

function processesOf(path: string, isServed: boolean): Finding {
  const holders = holdersOf(path);
  if (holders === undefined) return skipped(`this system does not show which processes have ${path} open`);
  if (holders.length > 1)
    return failed(
      `${holders.length} processes have ${path} open: ${holders.join(', ')}`,
      'end all but one gateway; several processes need storage.redis',
    );
  if (holders.length === 1 && !isServed)
    return warned(
      `process ${holders[0]} has ${path} open, and no gateway answers at server.port: a start makes two`,
      'end it first, or name another file',
    );
  return passed(holders.length === 0 ? 'no process has the file open' : `process ${holders[0]} alone has it open`);
}

/** Process ids; undefined where the system does not show them. */
function holdersOf(path: string): readonly string[] | undefined {
  if (!existsSync(LOCKS)) return undefined;
  const index = `${path}-shm`;
  if (!existsSync(index)) return [];
  const { dev, ino } = statSync(index, { bigint: true });
  const device = [(dev >> 8n) & 0xfffn, (dev & 0xffn) | ((dev >> 12n) & 0xfff00n)];
  const file = `${device.map((part) => part.toString(16).padStart(2, '0')).join(':')}:${ino}`;
  // `5: POSIX  ADVISORY  READ 5199 fe:00:2146554 128 128`
  const locks = readFileSync(LOCKS, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const holders = locks
    .filter(([, , , , , where, first]) => where === file && first === String(CONNECTION_BYTE))
    .map(([, , , , pid = '']) => pid);
  return [...new Set(holders)].filter((pid) => pid !== String(process.pid));
}
