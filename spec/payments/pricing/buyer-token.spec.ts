import assert from 'node:assert/strict';
import { createHash, createHmac, hkdfSync } from 'node:crypto';
import { describe, it } from 'node:test';
import {
  createBuyerTokens,
  openTokenKeys,
  type SharedSecrets,
  TOKEN_CHARACTERS,
  type TokenKeys,
} from '../../../src/payments/pricing/buyer-token.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import { keyOf, MAX_TIMEOUT_SECONDS, SCOPE, TERMS, tokensUnder } from '../settlement/tokens.ts';

const tokensOf = ({ current }: TokenKeys) => createBuyerTokens(current);
const isGenuine = (keys: TokenKeys, token: string): boolean =>
  (tokensOf(keys).read(token, TERMS)?.genuineForMs ?? 0) > 0;
/** Resolves when the store has answered. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

function sharedMap(): SharedSecrets {
  const values = new Map<string, string>();
  return {
    async agree(name, candidate) {
      if (!values.has(name)) values.set(name, candidate);
      return values.get(name) ?? '';
    },
  };
}

describe('the keys of tokens', () => {
  it('come from the secrets of the operator, the newest first, and the store is not asked', () => {
    const shared: SharedSecrets = { agree: async () => assert.fail('the store was asked') };
    const keys = openTokenKeys(['new', 'old'], SCOPE, shared);
    assert.deepEqual(keys.current(), [keyOf('new'), keyOf('old')]);
    keys.close();
  });

  it('without one are the same in every process: each accepts the tokens of the others', async () => {
    const shared = sharedMap();
    const [one, other] = [openTokenKeys([], SCOPE, shared), openTokenKeys([], SCOPE, shared)];
    await settled();
    assert.deepEqual(one.current()[0], other.current()[0]);
    assert.ok(isGenuine(other, tokensOf(one).issue(undefined, TERMS)));
    one.close();
    other.close();
  });

  it('a token that a process issued before it agreed with the others is accepted afterwards', async () => {
    const shared = sharedMap();
    await shared.agree('buyer-token', 'chosen-before');
    const keys = openTokenKeys([], SCOPE, shared);
    const early = tokensOf(keys).issue(undefined, TERMS);
    await settled();
    assert.deepEqual(keys.current()[0], keyOf('chosen-before'));
    assert.ok(isGenuine(keys, early));
    keys.close();
  });

  it('while the store is silent are its own, and are offered until it answers', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const shared = sharedMap();
    let away = true;
    const keys = openTokenKeys([], SCOPE, {
      agree: async (name, candidate) => {
        if (away) throw new StoreError('gone');
        return shared.agree(name, candidate);
      },
    });
    const early = tokensOf(keys).issue(undefined, TERMS);
    await settled();
    away = false;
    t.mock.timers.tick(1_000);
    await settled();
    const heir = openTokenKeys([], SCOPE, shared);
    await settled();
    assert.ok(isGenuine(heir, early), 'its own became the shared one');
    keys.close();
    heir.close();
  });

  it('outlive the process with the store', async () => {
    const store = openSqliteStore({ path: ':memory:', limits: { eventsMaxLength: 1, receiptsMaxLength: 1 } });
    const first = await store.secrets.agree('buyer-token', 'first');
    assert.deepEqual([first, await store.secrets.agree('buyer-token', 'second')], ['first', 'first']);
    assert.equal(await store.secrets.agree('another', 'second'), 'second');
    await store.close();
  });
});

const BIND = createHash('sha256').update('what is bought').digest('hex');
const NOW_MS = 1_800_000_000_000;
/** Seconds a token counts after it was issued. */
const LIFE_SECONDS = MAX_TIMEOUT_SECONDS + 600;

describe('the token of a challenge', () => {
  const tokens = tokensUnder(['one'], () => NOW_MS);

  it('is 72 characters of base64url: version, key, time, random, what was asked for, MAC', () => {
    const text = tokens.issue(BIND, TERMS);
    assert.equal(text.length, TOKEN_CHARACTERS);
    const bytes = Buffer.from(text, 'base64url');
    assert.equal(bytes.length, 54);
    assert.deepEqual([bytes[0], bytes[1]], [1, keyOf('one').id]);
    assert.equal(bytes.readUIntBE(2, 5), NOW_MS / 1_000);
    assert.equal(bytes.subarray(23, 38).toString('hex'), BIND.slice(0, 30));
  });

  it('ends in half of the HMAC-SHA-256 over the rest and the terms', () => {
    for (const bind of [BIND, undefined]) {
      const bytes = Buffer.from(tokens.issue(bind, TERMS), 'base64url');
      const { resourceUrl, units, maxTimeoutSeconds } = TERMS;
      const mac = createHmac('sha256', secretOf('one')).update(bytes.subarray(0, 38));
      mac.update(JSON.stringify([resourceUrl, units, maxTimeoutSeconds]));
      assert.deepEqual(bytes.subarray(38), mac.digest().subarray(0, 16));
    }
  });

  it('is another one each time, bound or not', () => {
    const issued = Array.from({ length: 1_000 }, (_, i) => tokens.issue(i % 2 === 0 ? BIND : undefined, TERMS));
    assert.equal(new Set(issued.map((text) => Buffer.from(text, 'base64url').toString('hex', 7, 23))).size, 1_000);
    const unbound = Buffer.from(tokens.issue(undefined, TERMS), 'base64url');
    assert.ok(unbound.subarray(23, 38).every((byte) => byte === 0));
  });

  it('is genuine under each accepted key, and under no other merchant, chain, asset or payee', () => {
    const text = tokens.issue(BIND, TERMS);
    const genuine = (secret: string, scope = SCOPE): boolean => {
      const read = createBuyerTokens(
        () => [keyOf(secret, scope)],
        () => NOW_MS,
      ).read(text, TERMS);
      return (read?.genuineForMs ?? -1) > 0;
    };
    assert.equal(genuine('one'), true);
    assert.ok(
      (tokensUnder(['two', 'one'], () => NOW_MS).read(text, TERMS)?.genuineForMs ?? 0) > 0,
      'during a rotation',
    );
    assert.equal(genuine('two'), false);
    for (const other of [{ merchantId: 'other' }, { chainId: 2 }, { asset: '0xc' }, { payTo: '0xc' }])
      assert.equal(genuine('one', { ...SCOPE, ...other }), false);
  });

  it('is worthless once one bit of it is another', () => {
    const bytes = Buffer.from(tokens.issue(BIND, TERMS), 'base64url');
    for (let bit = 0; bit < 8 * bytes.length; bit += 1) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const read = tokens.read(changed.toString('base64url'), TERMS);
      assert.ok(read === undefined || read.genuineForMs === 0, `bit ${bit}`);
    }
  });

  it('is worthless when it is older than a proof may be, or from the future', () => {
    const text = tokens.issue(BIND, TERMS);
    const at = (seconds: number) =>
      tokensUnder(['one'], () => NOW_MS + seconds * 1_000).read(text, TERMS)?.genuineForMs ?? 0;
    assert.ok(at(LIFE_SECONDS) > 0);
    assert.equal(at(LIFE_SECONDS + 1), 0);
    assert.ok(at(-60) > 0, 'the clocks of two pods differ');
    assert.equal(at(-61), 0);
  });

  it('is none in any other spelling', () => {
    const text = tokens.issue(BIND, TERMS);
    const others = ['', text.slice(1), `${text}=`, ` ${text}`, `${text}\n`, text.replace(/^../, '+/'), 'ä'.repeat(72)];
    for (const other of others) assert.equal(tokens.read(other, TERMS), undefined, JSON.stringify(other));
    const otherVersion = Buffer.from(text, 'base64url');
    otherVersion[0] = 2;
    assert.equal(tokens.read(otherVersion.toString('base64url'), TERMS), undefined);
  });
});

describe('what a token says of the terms of its 402', () => {
  const tokens = tokensUnder(['one'], () => NOW_MS);
  const text = tokens.issue(BIND, TERMS);

  it('they were offered, until the second in which its 402 ends', () => {
    const { offeredUntilMs } = tokens.read(text, TERMS) ?? assert.fail('no token');
    assert.equal(offeredUntilMs, NOW_MS + (MAX_TIMEOUT_SECONDS + 1) * 1_000);
    const later = tokensUnder(['one'], () => NOW_MS + LIFE_SECONDS * 1_000).read(text, TERMS);
    assert.equal(later?.offeredUntilMs, offeredUntilMs, 'the end stays where it was');
  });

  for (const [title, other] of [
    ['another resource', { resourceUrl: 'https://shop.example/api/resources/dear/invoke' }],
    ['a lower price', { units: '1' }],
    ['a longer time', { maxTimeoutSeconds: 3_600 }],
  ] as const)
    it(`nothing of ${title}, whose buyer it does not name either`, () => {
      assert.deepEqual(tokens.read(text, { ...TERMS, ...other }), {
        text,
        genuineForMs: 0,
        offeredUntilMs: undefined,
        answerOf: undefined,
        boundTo: BIND.slice(0, 30),
      });
    });

  it('which purchase it is for, and none of a call without an input', () => {
    assert.equal(tokens.read(text, TERMS)?.boundTo, BIND.slice(0, 30));
    assert.equal(tokens.read(tokens.issue(undefined, TERMS), TERMS)?.boundTo, undefined);
  });
});

describe('the payment that a token names', () => {
  const tokens = tokensUnder(['one'], () => NOW_MS);
  const [named, other] = ['named', 'other'].map((text) => createHash('sha256').update(text).digest('hex')) as [
    string,
    string,
  ];
  const text = tokens.issue(BIND, TERMS, named);
  const [secret, behind] = text.split('.') as [string, string];
  const read = (token: string, terms = TERMS) => {
    const { genuineForMs = 0, answerOf } = tokens.read(token, terms) ?? {};
    return [genuineForMs > 0, answerOf];
  };

  it('stands behind a dot, and is read from a genuine token alone', () => {
    assert.equal(text.length, TOKEN_CHARACTERS + 44);
    assert.deepEqual(read(text), [true, named]);
    assert.deepEqual(read(text, { ...TERMS, units: '1' }), [false, undefined]);
    const late = tokensUnder(['one'], () => NOW_MS + (LIFE_SECONDS + 1) * 1_000).read(text, TERMS);
    assert.deepEqual([late?.genuineForMs, late?.answerOf], [0, undefined]);
    assert.equal(tokensUnder(['two'], () => NOW_MS).read(text, TERMS)?.answerOf, undefined);
  });

  it('is covered by the MAC: cut off, added, changed or of another token, the token is not genuine', () => {
    const plain = tokens.issue(BIND, TERMS);
    const [, ofOther] = tokens.issue(BIND, TERMS, other).split('.');
    for (const forged of [secret, `${plain}.${behind}`, `${secret}.${ofOther}`, `${plain}.${ofOther}`])
      assert.deepEqual(read(forged), [false, undefined], forged);
  });

  it('cannot be moved into the terms: no two of them read alike', () => {
    const { resourceUrl, units, maxTimeoutSeconds } = TERMS;
    const [, name] = text.split('.');
    const longer = { resourceUrl, units, maxTimeoutSeconds: `${maxTimeoutSeconds}]${name}` as unknown as number };
    assert.deepEqual(read(secret, longer), [false, undefined]);
  });

  it('in any other spelling leaves no token', () => {
    for (const none of [`${text}.`, `${secret}.`, `${secret}.${behind.slice(1)}`, `${secret}.${behind}A`, `.${behind}`])
      assert.equal(tokens.read(none, TERMS), undefined, none);
  });
});

/** The key under which a secret makes the tokens of the scope. */
function secretOf(secret: string): Buffer {
  const { merchantId, chainId, asset, payTo } = SCOPE;
  const info = `acg buyer token 1|${merchantId}|${chainId}|${asset.toLowerCase()}|${payTo.toLowerCase()}`;
  return Buffer.from(hkdfSync('sha256', secret, '', info, 33)).subarray(0, 32);
}
