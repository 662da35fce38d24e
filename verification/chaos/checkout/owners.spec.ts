import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { askAcp, assertAcpError, OTHER_TOKEN } from '../../../spec/adapters/acp/testbed.ts';
import { insist, insistUntilCut } from './agent.ts';
import { dieAt } from './deaths.ts';
import { type Ground, startGround } from './ground.ts';
import { callFor } from './keyed-call.ts';

/** Fails a test whose gateway does not die, milliseconds. */
const TIMEOUT_MS = 120_000;
const CREATE = 'createCheckoutSession';

/**
 * A gateway on Redis with several clients. Every gateway must know the owner of a session once its
 * client received it.
 */
describe('a gateway that dies while it opens a session', { concurrency: 4, timeout: TIMEOUT_MS }, () => {
  let ground: Ground;
  let replica: string;
  before(async () => {
    ground = await startGround();
    const site = await ground.site({ store: 'redis', clients: 'two' });
    replica = (await site.start()).baseUrl;
  });
  after(() => ground.stop());

  const belongsToItsClient = async (text: string): Promise<void> => {
    const path = `/checkout_sessions/${String((JSON.parse(text) as { readonly id: string }).id)}`;
    const mine = await askAcp(replica, { method: 'GET', path });
    assert.equal(mine.status, 200, mine.text);
    const headers = { authorization: `Bearer ${OTHER_TOKEN}` };
    for (const asked of [{ method: 'GET' }, { path: `${path}/cancel`, body: {} }])
      assertAcpError(await askAcp(replica, { path, headers, ...asked }), 404, 'checkout_session_not_found');
  };

  for (const at of ['after_claim', 'after_merchant', 'after_own', 'after_finish'] as const)
    it(`at "${at}": the session that its client gets in the end belongs to this client`, async () => {
      const call = await callFor(ground, CREATE);
      await dieAt(call, await ground.site({ store: 'redis', clients: 'two' }), at);
      const { answer } = await insist(call, replica);
      assert.equal(answer.status, 201, answer.text);
      await belongsToItsClient(answer.text);
    });

  for (const acts of [true, false])
    it(`while the backend has the call and ${acts ? 'has' : 'has not'} acted: the same`, async () => {
      const call = await callFor(ground, CREATE);
      const site = await ground.site({ store: 'redis', clients: 'two' });
      const gateway = await site.start();
      ground.backend.misbehave({ kind: 'hang', acts }, call.aim);
      const arrived = ground.backend.arrived(call.aim);
      const cut = insistUntilCut(call, site.baseUrl);
      await arrived;
      await gateway.kill();
      await cut;
      const { answer } = await insist(call, replica);
      assert.equal(answer.status, 201, answer.text);
      await belongsToItsClient(answer.text);
    });
});
