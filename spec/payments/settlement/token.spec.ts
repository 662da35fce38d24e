import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SettlementRequest, SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { keyDigest, tokenDigest, tokenId } from '../../../src/payments/settlement/stored-purchase.ts';
import { keptAnswer, sha256 } from '../ledger/samples.ts';
import { freshTerms, KEEP_ANSWER_MS, worldOfEachTest } from './world.ts';

const TOKEN = 'token-of-the-buyer';
const OTHER_TOKEN = 'token-of-an-onlooker';
const KEY = 'key-of-the-buyer';

interface Secrets {
  readonly token?: string;
  /** It is forged or too old. */
  readonly worthless?: true;
  /** Of a public 402: other payments show it too. */
  readonly shared?: true;
  readonly key?: string;
}

describe('the same proof again, with the token of its challenge', () => {
  const world = worldOfEachTest();
  const { settleOnce, pay, later, record } = world;

  /** Terms as a call with these secrets has them. */
  const showing = ({ token, worthless, shared, key }: Secrets): Pick<SettlementRequest, 'terms' | 'token'> => {
    const { keyDigest: _key, tokenDigest: _token, ...terms } = world.terms;
    return {
      terms: {
        ...terms,
        ...(key === undefined ? {} : { keyDigest: keyDigest(terms.payId, key) }),
        ...(token === undefined ? {} : { tokenDigest: tokenDigest(terms.payId, token) }),
      },
      ...(token === undefined
        ? {}
        : { token: worthless ? { kind: 'worthless' } : issued(shared ? token : `${token} ${terms.payId}`) }),
    };
  };
  const issued = (token: string) => ({ kind: 'issued', id: tokenId(token), forMs: 720_000 }) as const;
  const delivered = async (secrets: Secrets): Promise<void> => {
    const result = await pay(showing(secrets));
    await world.deliver(result, { answer: keptAnswer() });
  };
  const undelivered = async (secrets: Secrets): Promise<void> => {
    const result = await pay(showing(secrets));
    await world.failDelivery(result);
  };
  const answerOf = (result: SettlementResult): string => {
    if (result.kind === 'spent') return `spent ${result.state}${result.guarded ? ' guarded' : ''}`;
    if (result.kind === 'in_flight') return result.alone ? 'in_flight alone' : 'in_flight';
    return result.kind === 'replayed' ? `replayed${result.joined ? ' joined' : ''}` : result.kind;
  };

  /**
   * What the first call showed, what the next one shows; the answer while it runs, when it was
   * delivered, when it was not.
   */
  const rows: readonly (readonly [Secrets, Secrets, string, string, string])[] = [
    [{ token: TOKEN }, { token: TOKEN }, 'in_flight', 'replayed', 'paid'],
    [{ token: TOKEN }, { token: TOKEN, worthless: true }, 'in_flight', 'replayed', 'paid'],
    [{ token: TOKEN }, { token: TOKEN, key: KEY }, 'in_flight', 'replayed', 'paid'],
    [{ token: TOKEN }, { token: OTHER_TOKEN }, 'in_flight alone', 'spent delivered', 'spent undelivered guarded'],
    [{ token: TOKEN }, {}, 'in_flight alone', 'spent delivered', 'spent undelivered guarded'],
    [{ token: TOKEN }, { key: TOKEN }, 'in_flight alone', 'spent delivered', 'spent undelivered guarded'],
    [{ key: KEY, token: TOKEN }, { token: TOKEN }, 'in_flight alone', 'spent delivered', 'spent undelivered guarded'],
    [{ key: KEY, token: TOKEN }, { key: KEY, token: OTHER_TOKEN }, 'in_flight', 'replayed', 'paid'],
    [{}, { token: TOKEN }, 'in_flight alone', 'spent delivered', 'paid'],
    [{}, {}, 'in_flight alone', 'spent delivered', 'paid'],
    [{ token: TOKEN, worthless: true }, { token: TOKEN }, 'in_flight alone', 'spent delivered', 'paid'],
    [{ token: TOKEN, worthless: true }, {}, 'in_flight alone', 'spent delivered', 'paid'],
  ];
  const words = ({ token, worthless, key }: Secrets): string =>
    [key && `the key ${key}`, token && `the ${worthless ? 'worthless ' : ''}token ${token}`]
      .filter((word) => word !== undefined)
      .join(' and ') || 'nothing';
  for (const [first, now, running, done, open] of rows)
    it(`first with ${words(first)}, now with ${words(now)}`, async () => {
      await pay(showing(first));
      assert.equal(answerOf(await settleOnce(showing(now))), running, 'running');
      world.terms = freshTerms();
      await delivered(first);
      assert.equal(answerOf(await settleOnce(showing(now))), done, 'delivered');
      world.terms = freshTerms();
      await undelivered(first);
      assert.equal(answerOf(await settleOnce(showing(now))), open, 'undelivered');
    });

  it('the answer is there again for the time that is configured', async () => {
    await delivered({ token: TOKEN });
    later(KEEP_ANSWER_MS - 1);
    assert.equal(answerOf(await settleOnce(showing({ token: TOKEN }))), 'replayed');
    later(1);
    assert.equal(answerOf(await settleOnce(showing({ token: TOKEN }))), 'spent delivered');
  });

  it('the answer of a call that joined is not marked as replayed', async () => {
    await delivered({ token: TOKEN });
    assert.equal(answerOf(await settleOnce(showing({ token: TOKEN }), world.ledger, true)), 'replayed joined');
    assert.equal(answerOf(await settleOnce({ ...showing({ token: TOKEN }), elapsedMs: () => 3 })), 'replayed joined');
    assert.equal(answerOf(await settleOnce({ ...showing({ token: TOKEN }), elapsedMs: () => 2 })), 'replayed');
  });

  it('a token that another payment showed first is no secret: the proof alone collects', async () => {
    await delivered({ token: TOKEN, shared: true });
    world.terms = freshTerms();
    await undelivered({ token: TOKEN, shared: true });
    assert.equal((await record())?.tokenDigest, undefined);
    assert.equal(answerOf(await settleOnce(showing({}))), 'paid');
  });

  it('a new token with an old proof replaces nothing', async () => {
    await undelivered({ token: TOKEN });
    for (let attempt = 0; attempt < 3; attempt += 1) await settleOnce(showing({ token: OTHER_TOKEN }));
    assert.equal(answerOf(await settleOnce(showing({ token: TOKEN }))), 'paid');
  });

  it('calls without the secret ask no peer and use no attempt up, however many', async () => {
    await undelivered({ token: TOKEN });
    const before = await record();
    for (let question = 0; question < 200; question += 1) {
      later(1_000);
      await settleOnce(showing(question % 2 === 0 ? {} : { token: `${OTHER_TOKEN}-${question}` }));
    }
    assert.deepEqual(await record(), before);
  });

  it('a proof of another purchase gets the same answer with the token', async () => {
    await pay(showing({ token: TOKEN }));
    const { terms, ...shown } = showing({ token: TOKEN });
    assert.equal(
      answerOf(await settleOnce({ terms: { ...terms, bind: sha256('another input') }, ...shown })),
      'spent used',
    );
    assert.equal((await record())?.state, 'settled');
  });

  it('a reconciler goes on with a record whatever its secret', async () => {
    await undelivered({ token: TOKEN });
    const terms = (await record()) ?? assert.fail();
    assert.equal(answerOf(await settleOnce({ terms })), 'paid');
  });
});
