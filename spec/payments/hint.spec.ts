import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hintDigest, keyDigest } from '../../src/payments/key.ts';
import type { Order, Sale } from '../../src/payments/sale.ts';
import { keptAnswer, sha256 } from './ledger/samples.ts';
import { tillOfEachTest } from './till.ts';

const HINT = 'a2a:message-of-the-buyer';
const OTHER_HINT = 'a2a:message-of-an-onlooker';
const KEY = 'key-of-the-buyer';
const TEN_MINUTES_MS = 10 * 60 * 1_000;
const FAILED = { failure: 'BACKEND_ERROR', requestWritten: true, repeatable: true } as const;

interface Names {
  readonly hint?: string;
  readonly key?: string;
}

describe('the same proof again, under the name of its message', () => {
  const till = tillOfEachTest();
  const { take, pay, desk, facts, later, record } = till;

  /** Terms as a call with these names has them. */
  const named = ({ hint, key }: Names): Pick<Order, 'terms'> => {
    const { keyDigest: _key, hintDigest: _hint, ...terms } = till.terms;
    if (key !== undefined) return { terms: { ...terms, keyDigest: keyDigest(terms.payId, key) } };
    return { terms: hint === undefined ? terms : { ...terms, hintDigest: hintDigest(terms.payId, hint) } };
  };
  const delivered = async (names: Names): Promise<void> => {
    const sale = await pay(named(names));
    await desk().delivered(sale.record, facts(sale, { answer: keptAnswer() }));
  };
  const undelivered = async (names: Names): Promise<void> => {
    const sale = await pay(named(names));
    await desk().undelivered(sale.record, { ...facts(sale), ...FAILED });
  };
  const told = (sale: Sale): string => {
    if (sale.kind === 'spent') return `spent ${sale.state}`;
    return sale.kind === 'again' ? `again${sale.joined ? ' joined' : ''}` : sale.kind;
  };

  /** What the delivered call brought, what the next one brings, the answer. */
  const rows: readonly (readonly [Names, Names, string])[] = [
    [{ hint: HINT }, { hint: HINT }, 'again'],
    [{ hint: HINT }, { hint: OTHER_HINT }, 'spent delivered'],
    [{ hint: HINT }, {}, 'spent delivered'],
    [{ hint: HINT }, { key: KEY }, 'spent delivered'],
    [{ hint: HINT }, { key: HINT }, 'spent delivered'],
    [{}, { hint: HINT }, 'spent delivered'],
    [{ key: KEY }, { hint: HINT }, 'spent delivered'],
    [{ key: HINT }, { hint: HINT }, 'spent delivered'],
  ];
  const words = ({ hint, key }: Names): string => (key ? `the key ${key}` : hint ? `the hint ${hint}` : 'nothing');
  for (const [first, now, answer] of rows)
    it(`delivered with ${words(first)}, asked for again with ${words(now)}: ${answer}`, async () => {
      await delivered(first);
      const sale = await take(named(now));
      assert.equal(told(sale), answer);
      if (sale.kind === 'again') assert.deepEqual(Buffer.from(sale.kept.body), Buffer.from(keptAnswer().body));
    });

  it('the answer is there again for ten minutes', async () => {
    await delivered({ hint: HINT });
    later(TEN_MINUTES_MS - 1);
    assert.equal(told(await take(named({ hint: HINT }))), 'again');
    later(1);
    assert.equal(told(await take(named({ hint: HINT }))), 'spent delivered');
  });

  it('an onlooker has it no longer than without a hint: not at all once it was delivered', async () => {
    await delivered({ hint: HINT });
    later(1_000);
    assert.equal(told(await take({ ...named({ hint: OTHER_HINT }), elapsedMs: () => 1_002 })), 'spent delivered');
  });

  it('calls that came while it was being made have it all the same; the same message as one that is repeated', async () => {
    await delivered({ hint: HINT });
    assert.equal(told(await take(named({ hint: OTHER_HINT }), till.ledger, true)), 'again joined');
    assert.equal(told(await take(named({ hint: HINT }), till.ledger, true)), 'again');
  });

  it('what was not delivered is collected under any name or none', async () => {
    for (const names of [{ hint: OTHER_HINT }, {}, { key: KEY }, { hint: HINT }]) {
      await undelivered({ hint: HINT });
      assert.equal(told(await take(named(names))), 'paid');
      later(8_000);
    }
  });

  it('collected under another name, the answer is there again for the name that paid', async () => {
    await undelivered({ hint: HINT });
    await delivered({ hint: OTHER_HINT });
    assert.equal(told(await take(named({ hint: OTHER_HINT }))), 'spent delivered');
    assert.equal(told(await take(named({ hint: HINT }))), 'again');
  });

  it('guards nothing: what is running or has bought something else is told as to anybody', async () => {
    await pay(named({ hint: HINT }));
    assert.equal(told(await take(named({ hint: OTHER_HINT }))), 'in_flight');
    const elsewhere = { terms: { ...named({ hint: HINT }).terms, bind: sha256('another input') } };
    assert.equal(told(await take(elsewhere)), 'spent used');
    assert.equal((await record())?.state, 'settled');
  });
});
