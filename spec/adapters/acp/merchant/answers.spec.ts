import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { completeWith, documentIn, type GroundOptions, onGround, write } from './ground.ts';

describe('what was asked for', () => {
  it('goes out in the merchant’s own bytes', () =>
    onGround(async (ground) => {
      const { open, session } = ground;
      const sessionId = await session();
      const end = await write(open({ operation: 'completeCheckoutSession', sessionId }));
      assert.ok(end.kind === 'answer');
      assert.equal(end.answer.status, 200);
      assert.equal(documentIn(end)['status'], 'completed');
      assert.equal(JSON.stringify(documentIn(end)), Buffer.from(end.answer.body).toString());
    }));

  it('may be a declined payment, and 3D Secure to its end', () =>
    onGround(
      async ({ merchant, open, session }) => {
        const sessionId = await session();
        const complete = async (body: string) =>
          write(open({ operation: 'completeCheckoutSession', sessionId, body: Buffer.from(body) }));
        const declined = documentIn(await complete(completeWith('tok_declined')));
        assert.equal(declined['status'], 'ready_for_payment');
        assert.equal(documentIn(await complete(completeWith('tok_3ds')))['status'], 'authentication_required');
        assert.equal(documentIn(await complete(completeWith('tok_3ds')))['code'], 'requires_3ds');
        const result = { authentication_result: { outcome: 'authenticated' } };
        const done = documentIn(await complete(completeWith('tok_3ds', result)));
        assert.equal(done['status'], 'completed');
        assert.equal(merchant.orders(sessionId), 1);
      },
      { authenticationErrors: true },
    ));
});

describe('a caller who leaves', () => {
  const options: GroundOptions = { timeoutMs: 5_000 };
  it('takes his own GET with him, and learns nothing more', () =>
    onGround(async ({ merchant, open, session, exchanging }) => {
      const sessionId = await session();
      merchant.misbehave({ kind: 'hang', acts: false });
      const left = new AbortController();
      const arrived = merchant.arrived();
      const end = open({ operation: 'getCheckoutSession', sessionId }).read(left.signal);
      await arrived;
      left.abort();
      assert.equal((await end).kind, 'unknown');
      assert.equal(exchanging(), 0);
    }, options));
});
