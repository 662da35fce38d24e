import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { EventQuery, EventType } from '../../src/events/event.ts';
import { readStoredMandate } from '../../src/mandates/stored-mandate.ts';
import type { Receipt, ReceiptQuery } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { temporaryDirectory } from './opened.ts';
import { CARRIED, STATES, type Stage } from './purchases.ts';

const KILLS = 12;
const CALLERS = 16;
/** Most acknowledged writes of a process before it is killed. */
const MOST_WRITES = 400;
const LIMITS = { eventsMaxLength: 1_000_000, receiptsMaxLength: 1_000_000 };
const PURCHASES = fileURLToPath(import.meta.resolve('./purchases-main.ts'));
const directory = temporaryDirectory();
/** Where SQLite makes its temporary files. */
const TEMPORARY_FILES = join(directory, 'temporary');

describe('the embedded store under kill -9', () => {
  it(`keeps all it acknowledged, and no half transition, over ${KILLS} processes of one file`, async () => {
    const path = join(directory, 'gateway.db');
    mkdirSync(TEMPORARY_FILES);
    const untouched = statSync(TEMPORARY_FILES, { bigint: true }).mtimeNs;
    const acknowledged = new Map<string, Stage>();
    for (let run = 0; run < KILLS; run += 1) {
      await payUntilKilled(path, `run-${run}`, 1 + randomInt(MOST_WRITES), acknowledged);
      const store = openSqliteStore({ path, limits: LIMITS });
      await check(store, path, acknowledged);
      await store.close();
    }
    // The kills hit payments in every state.
    const reached = new Set(acknowledged.values());
    assert.deepEqual(reached, new Set(STATES));
    // In the read-only container nothing can be written beside the file.
    assert.equal(statSync(TEMPORARY_FILES, { bigint: true }).mtimeNs, untouched, 'no temporary file');
  });
});

/** Kills a process that pays after `lines` acknowledged writes; reads its output to the end. */
async function payUntilKilled(
  path: string,
  name: string,
  lines: number,
  acknowledged: Map<string, Stage>,
): Promise<void> {
  const child = spawn(process.execPath, [PURCHASES, path, name, `${CALLERS}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, SQLITE_TMPDIR: TEMPORARY_FILES },
  });
  leash(child);
  const ending = new Promise<NodeJS.Signals | null>((resolve) =>
    child.once('exit', (_code, signal) => resolve(signal)),
  );
  let read = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const [payId = '', state] = line.split(' ');
    // The last line may have been cut off.
    if (STATES.includes(state as Stage)) acknowledged.set(payId, state as Stage);
    read += 1;
    if (read === lines) child.kill('SIGKILL');
  }
  assert.equal(await ending, 'SIGKILL');
  assert.ok(read >= lines);
}

async function check(store: Store, path: string, acknowledged: ReadonlyMap<string, Stage>): Promise<void> {
  const db = new DatabaseSync(path, { readOnly: true });
  assert.deepEqual(db.prepare('PRAGMA integrity_check').all(), [{ __proto__: null, integrity_check: 'ok' }]);
  const payIds = db
    .prepare("SELECT substr(key, 5) AS id FROM documents WHERE key LIKE 'pay:%'")
    .all()
    .map((row) => String(row['id']));
  const state = db.prepare("SELECT value FROM documents WHERE key LIKE 'ap2:open:%'").get()?.['value'];
  const used = new Set(
    db
      .prepare("SELECT substr(key, 10) AS id FROM documents WHERE key LIKE 'ap2:once:%'")
      .all()
      .map((row) => String(row['id'])),
  );
  db.close();
  const there = new Set(payIds);
  for (const payId of acknowledged.keys()) assert.ok(there.has(payId), 'an acknowledged payment is lost');
  const { events, receipts } = await trails(store);
  const stages: Stage[] = [];
  for (const payId of payIds) {
    const record = (await store.ledger.read(payId)) ?? assert.fail();
    const stage = record.state as Stage;
    stages.push(stage);
    const { once = [] } = readStoredMandate(record.mandate ?? '')?.claim ?? {};
    assert.ok(once.length > 0 && once.every((id) => used.has(id)), 'a payment stands and its mandate is free');
    const least = acknowledged.get(payId) ?? 'reserved';
    assert.ok(STATES.indexOf(stage) >= STATES.indexOf(least), `${least} was acknowledged, ${stage} is there`);
    const { receipt, ...wanted } = CARRIED[stage];
    const found = receipts.get(record.requestId);
    assert.deepEqual(
      { events: events.get(record.requestId) ?? [], kept: (await store.ledger.kept(payId)) !== undefined },
      wanted,
    );
    if (receipt === undefined) assert.equal(found, undefined);
    else assert.partialDeepStrictEqual(found, { id: record.receiptId, ...receipt });
  }
  // The spent and pending units of the shared mandate are those of the payments.
  const paid = stages.filter((stage) => STATES.indexOf(stage) >= STATES.indexOf('settled')).length;
  const { spent, pending, uses, puses } = JSON.parse(String(state));
  const open = stages.length - paid;
  assert.deepEqual([spent, pending, uses, puses], [`${paid}`, `${open}`, paid, open]);
}

/** All events by request, oldest first, and all receipts. */
async function trails({ feed, receipts }: Store) {
  const events = new Map<string, EventType[]>();
  const found = new Map<string, Receipt>();
  for (let query: EventQuery | undefined = { limit: 500 }; query !== undefined; ) {
    const page = await feed.page(query);
    for (const { requestId, type } of page.events) events.set(requestId, [type, ...(events.get(requestId) ?? [])]);
    query = page.nextCursor === undefined ? undefined : { limit: 500, cursor: page.nextCursor };
  }
  for (let query: ReceiptQuery | undefined = { limit: 500 }; query !== undefined; ) {
    const page = await receipts.page(query);
    for (const receipt of page.receipts) found.set(receipt.requestId, receipt);
    query = page.nextCursor === undefined ? undefined : { limit: 500, cursor: page.nextCursor };
  }
  return { events, receipts: found };
}
