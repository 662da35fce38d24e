import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { Redis } from 'ioredis';
import { startRedis, type TestRedis } from '../../../spec/support/redis.ts';
import { startWorld } from '../../../spec/support/world.ts';
import { attack } from '../catalogue.ts';
import { formOf, type ProofMaker, proofMaker, type Target, targetOf } from '../target.ts';
import { answerTo, HOST, head, JSON_TYPE, type WireAnswer } from '../wire/conversation.ts';

/**
 * Texts that would end a key, a tag, a line or a string in a store that builds commands from text.
 */
const IDS = [
  'a b',
  'a\r\nFLUSHALL\r\n',
  'a}b',
  '{other-merchant}',
  '}:pay:x',
  'a\0b',
  "a'b",
  'a"b',
  '*3\r\n$3\r\nSET\r\n',
  'return redis.call("FLUSHALL")',
  '..',
  '*',
  '%0d%0aFLUSHALL',
  'a'.repeat(5_000),
  '\u202e',
];
/** All keys of one merchant have its tag, digests and fixed words only. */
const OWN_KEY = /^[\w-]*\{[\w.:-]*market-shop\}:[A-Za-z0-9:_.-]+$/;

describe('ids with store commands in them', () => {
  let redis: TestRedis;
  let target: Target;
  let proofs: ProofMaker;
  before(async () => {
    redis = await startRedis();
    const overrides = { protocols: { mcp: { enabled: true }, a2a: { enabled: true } } };
    target = targetOf(await startWorld({ storage: { redis: { url: redis.url } }, overrides }));
    proofs = await proofMaker(target);
  });
  after(async () => {
    await target?.stop();
    await redis?.stop();
  });

  const post = (path: string, body: string, ...lines: readonly string[]): Promise<WireAnswer> =>
    answerTo(
      target.url,
      head(`POST ${path} HTTP/1.1`, HOST, JSON_TYPE, `Content-Length: ${Buffer.byteLength(body)}`, ...lines) +
        Buffer.from(body).toString('latin1'),
    );
  const operator = (query: string): Promise<WireAnswer> =>
    answerTo(target.url, head(`GET ${query} HTTP/1.1`, HOST, `Authorization: Bearer ${target.adminToken}`));
  const isOurs = (answer: WireAnswer): void => assert.ok(formOf(answer), `${answer.status} ${answer.body.toString()}`);

  attack(['O10', 'I13'], 'in headers, messages, tools, tasks and queries name no key and run no command', async () => {
    const client = new Redis({ path: redis.socketPath });
    try {
      await client.set('planted', 'there');
      for (const id of IDS) {
        const inHeader = Buffer.from(id)
          .toString('latin1')
          .replace(/[\r\n\0]/g, '_')
          .slice(0, 4_000);
        const proof = await proofs.proof('echo');
        isOurs(
          await post(
            '/api/resources/echo/invoke',
            '{}',
            `Payment-Signature: ${proof}`,
            `Idempotency-Key: ${inHeader}`,
            `X-Request-Id: ${inHeader}`,
          ),
        );
        const parts = [{ data: { resource: 'echo', input: {} }, mediaType: 'application/json' }];
        const message = { messageId: id, taskId: id, contextId: id, role: 'ROLE_USER', parts };
        for (const sent of [message, { ...message, taskId: undefined, contextId: undefined }])
          isOurs(
            await post(
              '/a2a',
              JSON.stringify({ jsonrpc: '2.0', id, method: 'SendMessage', params: { message: sent } }),
              'A2A-Version: 1.0',
            ),
          );
        isOurs(
          await post(
            '/mcp',
            JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: id, arguments: {} } }),
          ),
        );
        const text = encodeURIComponent(id);
        for (const name of ['requestId', 'resourceId', 'cursor', 'type', 'limit', 'delivered'])
          for (const route of ['/api/events', '/api/receipts'])
            isOurs(await operator(`${route}?${name}=${text.slice(0, 6_000)}`));
        isOurs(await post(`/api/resources/${text.slice(0, 6_000)}/invoke`, '{}'));
      }
      assert.equal(await client.get('planted'), 'there');
      const keys = (await client.keys('*')).filter((key) => key !== 'planted');
      assert.ok(keys.length > IDS.length / 2, 'there are records');
      for (const key of keys) assert.match(key, OWN_KEY);
    } finally {
      await client.quit();
    }
    await target.stillSells();
  });
});
