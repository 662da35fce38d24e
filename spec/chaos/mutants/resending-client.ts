import { Redis } from 'ioredis';
import { redisCensus } from '../../../src/store/redis/census.ts';
import { redisCheckouts } from '../../../src/store/redis/checkouts.ts';
import { watchEpoch } from '../../../src/store/redis/epoch-watch.ts';
import { redisFeed } from '../../../src/store/redis/feed.ts';
import { redisHealth } from '../../../src/store/redis/health.ts';
import { redisKeys } from '../../../src/store/redis/keys.ts';
import { redisLedger } from '../../../src/store/redis/ledger.ts';
import { redisMandates } from '../../../src/store/redis/mandates.ts';
import { redisReceipts } from '../../../src/store/redis/receipts.ts';
import { redisSecrets } from '../../../src/store/redis/secrets.ts';
import { redisTaskClaims } from '../../../src/store/redis/task-claims.ts';
import { trimCount } from '../../../src/store/trim-count.ts';
import { misbehave } from './misbehave.ts';

const COMMAND_TIMEOUT_MS = 500;

/** The client as it comes: commands wait for a connection, and those without a reply are sent again. */
await misbehave({
  async openStore({ engine, merchantId, eventsMaxLength, receiptsMaxLength }, log) {
    if (engine.kind !== 'redis' || !('url' in engine)) throw new Error('this mistake is made with one Redis');
    const redis = new Redis(engine.url.replace(/^unix:\/\//, ''), {
      maxRetriesPerRequest: 20,
      enableOfflineQueue: true,
      autoResendUnfulfilledCommands: true,
      commandTimeout: COMMAND_TIMEOUT_MS,
    });
    redis.on('error', () => undefined);
    redis.once('close', () => redis.once('ready', () => log?.info({}, 'redis is reachable')));
    const keys = redisKeys(merchantId);
    const limits = { eventsMaxLength, receiptsMaxLength };
    const trimmed = trimCount();
    const receipts = redisReceipts(redis, keys, limits, trimmed);
    return {
      name: 'redis',
      ledger: redisLedger({ redis, replicated: undefined }, keys, limits, trimmed),
      feed: redisFeed({ redis, openTail: async () => redis.duplicate() }, keys, limits),
      receipts,
      tasks: redisTaskClaims(redis, keys),
      mandates: redisMandates({ redis }, keys),
      checkouts: redisCheckouts({ redis }, keys),
      secrets: redisSecrets(redis, keys),
      census: redisCensus(redis, keys),
      check: redisHealth(redis, keys, 0, watchEpoch(undefined, undefined)),
      tidy: () => receipts.tidy(),
      close: async () => redis.disconnect(),
    };
  },
});
