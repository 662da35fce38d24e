import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createBuyerTokens,
  openTokenKeys,
  type SharedSecrets,
  type TokenKeys,
} from '../../../src/payments/pricing/buyer-token.ts';
import { StoreError } from '../../../src/store/port/store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import { keyOf, SCOPE } from '../settlement/tokens.ts';

const tokensOf = ({ current }: TokenKeys) => createBuyerTokens(current, { maxTimeoutSeconds: 120 });
const isGenuine = (keys: TokenKeys, token: string): boolean => (tokensOf(keys).read(token)?.genuineForMs ?? 0) > 0;
/** What was asked of the store is answered. */
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

  it('without one are the same in every process: what one issued another believes', async () => {
    const shared = sharedMap();
    const [one, other] = [openTokenKeys([], SCOPE, shared), openTokenKeys([], SCOPE, shared)];
    await settled();
    assert.deepEqual(one.current()[0], other.current()[0]);
    assert.ok(isGenuine(other, tokensOf(one).issue(undefined)));
    one.close();
    other.close();
  });

  it('what a process issued before it had agreed with the others it still believes afterwards', async () => {
    const shared = sharedMap();
    await shared.agree('buyer-token', 'chosen-before');
    const keys = openTokenKeys([], SCOPE, shared);
    const early = tokensOf(keys).issue(undefined);
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
    const early = tokensOf(keys).issue(undefined);
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
