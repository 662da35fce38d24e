/** The port of commits over Redis: the commits of one turn of the event loop are one script. */

import { eventJson } from '../../events/event.ts';
import {
  type Commit,
  type Commits,
  type Committed,
  type Document,
  type Documents,
  VERSION_LENGTH,
} from '../port/commit.ts';
import { StoreError } from '../port/store-error.ts';
import { answered, COMMIT, READ, type RedisClient, redacted, runScript } from './client.ts';

/** Most commits of one script call, which takes the server some milliseconds. */
const MOST = 32;
/** Longest wait of a `later` commit for others, milliseconds. */
const LATER_MS = 10;
/** Values in place of a version in commit.lua: no document, and any. */
const [NONE, ANY] = ['-'.repeat(VERSION_LENGTH), '*'.repeat(VERSION_LENGTH)];
/** How far a decision may be from the store's clock, milliseconds. */
const CLOCK_SLACK_MS = 1_000;
/** How many replicas must have a write, and how long they may take for it, milliseconds. */
const WANTED_REPLICAS = 1;
const WAIT_MS = 100;
/** Errors of a server that ran nothing: it lacks the script, or another node has the key. */
const NOT_RUN = /^(NOSCRIPT|MOVED|ASK)\b/;

/** Fewest replicas for writes to wait for one: the loss of a single one would stop all payments. */
export const REPLICAS_TO_WAIT = 2;

interface Waiting extends PromiseWithResolvers<Committed> {
  readonly commit: Commit;
}

/** Runs one script call and resolves with its reply. */
type Run = (keys: readonly string[], words: readonly (string | Buffer)[]) => Promise<unknown>;

/**
 * `replicated`: a connection of its own, on which commits wait for a replica; absent, none waits.
 * `prefix`: of every key of the merchant.
 */
export function redisCommits(
  { redis, replicated }: { readonly redis: RedisClient; readonly replicated?: RedisClient | undefined },
  prefix: string,
  eventsMaxLength: number,
): Commits & { flush(): void } {
  /** The store's clock minus the monotonic one. */
  let offset = Date.now() - performance.now();
  const now = (): number => Math.floor(performance.now() + offset);
  const sawClock = (clock: number, sentAt: number): void => {
    // The server read its clock between `sentAt` and now.
    offset = Math.min(Math.max(offset, clock - performance.now()), clock - sentAt);
  };

  const send = async (gathered: readonly Waiting[], run: Run): Promise<void> => {
    try {
      const keys = [`${prefix}ev`];
      const words: (string | Buffer)[] = [String(now()), String(CLOCK_SLACK_MS), String(eventsMaxLength)];
      for (const { commit } of gathered) pack(commit, prefix, keys, words);
      const sentAt = performance.now();
      const [clock, ...replies] = (await run(keys, words)) as readonly [string, ...unknown[]];
      sawClock(Number(clock), sentAt);
      for (const [i, { commit, resolve, reject }] of gathered.entries()) {
        const reply = replies[i];
        if (reply === 'done' || reply === 'early') resolve({ kind: reply });
        else if (Array.isArray(reply)) resolve({ kind: 'conflict', documents: documentsOf(commit, reply) });
        else reject(new StoreError(new Error(String(reply))));
      }
    } catch (thrown) {
      for (const { reject } of gathered) reject(thrown);
    }
  };
  const main = gatherer((gathered) => send(gathered, (keys, words) => answered(runScript(redis, COMMIT, keys, words))));
  const guarded =
    replicated && gatherer((gathered) => send(gathered, (keys, words) => runReplicated(replicated, keys, words)));

  return {
    now,
    commit: (commit, how) =>
      how === 'replicated' && guarded !== undefined ? guarded.add(commit, false) : main.add(commit, how === 'later'),
    async read(keys) {
      main.flush();
      if (keys.length === 0) return new Map();
      const sentAt = performance.now();
      const stored = keys.map((key) => prefix + key);
      const [clock, values] = (await answered(runScript(redis, READ, stored, []))) as readonly [string, unknown[]];
      sawClock(Number(clock), sentAt);
      return new Map(keys.map((key, i) => [key, documentIn(values[i])]));
    },
    async bytes(key) {
      main.flush();
      const found = await answered(redis.getBuffer(prefix + key));
      return found === null ? undefined : new Uint8Array(found.subarray(VERSION_LENGTH));
    },
    async members(list, { by, above, below, latest = false, offset = 0, limit }) {
      main.flush();
      const [lowest, highest] =
        by === 'score' ? [above ?? '-inf', below ?? '+inf'] : [bound(above, '-'), bound(below, '+')];
      const [from, to] = latest ? [highest, lowest] : [lowest, highest];
      const order = [by === 'score' ? 'BYSCORE' : 'BYLEX', ...(latest ? ['REV'] : []), 'LIMIT', offset, limit];
      return (await answered(redis.call('ZRANGE', prefix + list, from, to, ...order))) as readonly string[];
    },
    size(list) {
      main.flush();
      return answered(redis.zcard(prefix + list));
    },
    flush: main.flush,
  };
}

/** Gathers the commits of one turn. */
function gatherer(send: (gathered: readonly Waiting[]) => Promise<void>) {
  let waiting: Waiting[] = [];
  let timer: NodeJS.Timeout | undefined;
  let turn: NodeJS.Immediate | undefined;

  const flush = (): void => {
    clearTimeout(timer);
    clearImmediate(turn);
    timer = undefined;
    turn = undefined;
    const gathered = waiting;
    waiting = [];
    for (let at = 0; at < gathered.length; at += MOST) void send(gathered.slice(at, at + MOST));
  };
  return {
    /** `later`: waits for others up to 10 ms instead of for the end of this turn. */
    add(commit: Commit, later: boolean): Promise<Committed> {
      const settled = Promise.withResolvers<Committed>();
      waiting.push({ commit, ...settled });
      if (!later) turn ??= setImmediate(flush);
      else if (turn === undefined) timer ??= setTimeout(flush, LATER_MS);
      if (waiting.length >= MOST) flush();
      return settled.promise;
    },
    /** Sends what waits now, so that a read on the same connection finds it. */
    flush(): void {
      if (waiting.length > 0) flush();
    },
  };
}

/** Appends a commit to the keys and arguments of commit.lua, which says what they are. */
function pack(
  { documents, entries = [], events = [], notBefore = 0 }: Commit,
  prefix: string,
  keys: string[],
  words: (string | Buffer)[],
): void {
  const lists = Map.groupBy(entries, ({ list, score = '' }) => `${score} ${list}`);
  words.push(`${documents.length} ${lists.size} ${entries.length} ${events.length} ${notBefore}`);
  for (const { key, expect, version = '', value, endMs } of documents) {
    keys.push(prefix + key);
    const end = endMs === undefined ? '' : Math.round(endMs);
    const expected = expect === undefined ? ANY : (expect ?? NONE);
    if (typeof value === 'string') words.push(`s${expected}${end}`, version + value);
    else if (value) words.push(`s${expected}${end}`, Buffer.concat([Buffer.from(version), value]));
    else words.push(`${value === null ? 'd' : endMs === undefined ? 'g' : 'e'}${expected}${end}`, '');
  }
  for (const changes of lists.values()) {
    const [{ list, score = '' } = { list: '' }] = changes;
    keys.push(prefix + list);
    words.push(`${changes.length} ${score}`);
    for (const { member } of changes) words.push(member);
  }
  for (const event of events) words.push(eventJson(event));
}

/** The documents with an `expect` in a commit, as the reply to a conflict has them. */
function documentsOf({ documents }: Commit, found: readonly unknown[]): Documents {
  return new Map(
    documents.flatMap(({ key, expect }, i) => (expect === undefined ? [] : [[key, documentIn(found[i])] as const])),
  );
}

function documentIn(stored: unknown): Document | undefined {
  if (typeof stored !== 'string') return undefined;
  return { version: stored.slice(0, VERSION_LENGTH), value: stored.slice(VERSION_LENGTH) };
}

/** A bound of members, which is exclusive. */
function bound(member: string | number | undefined, none: string): string {
  return member === undefined ? none : `(${member}`;
}

/**
 * Runs the script and WAIT in one pipeline, so that no reconnect comes between them. WAIT counts
 * the writes of its own connection, and blocks it.
 * @throws StoreError also when the write was made and no replica has it
 */
async function runReplicated(
  redis: RedisClient,
  keys: readonly string[],
  words: readonly (string | Buffer)[],
): Promise<unknown> {
  const attempt = async (): Promise<unknown> => {
    const pipeline = redis
      .pipeline()
      .evalsha(COMMIT.sha, keys.length, ...keys, ...words)
      .wait(WANTED_REPLICAS, WAIT_MS);
    const ended = pipeline.exec().catch((thrown: unknown) => [[thrown, undefined]] as const);
    const [[error, reply] = [], [unwaited, replicas] = []] = (await answered(ended, WAIT_MS)) ?? [];
    if (error || unwaited) throw new StoreError(redacted(error ?? unwaited));
    const wrote = Array.isArray(reply) && reply.includes('done');
    if (wrote && (typeof replicas !== 'number' || replicas < WANTED_REPLICAS))
      throw new StoreError(new Error('no replica has the write'));
    return reply;
  };
  try {
    return await attempt();
  } catch (thrown) {
    const { cause } = thrown as StoreError;
    if (!(cause instanceof Error) || !NOT_RUN.test(cause.message)) throw thrown;
    // A single EVAL without commits follows a redirection and loads the script.
    await answered(redis.eval(COMMIT.source, 1, `${keys[0]}`, ...words.slice(0, 3)));
    return attempt();
  }
}
