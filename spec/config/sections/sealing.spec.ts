import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { secretsOf } from '../../../src/config/secrets.ts';
import { configWarnings } from '../../../src/config/warnings.ts';
import { type Changes, load } from '../document/document.ts';
import { KEY, KEYS, selling, settings } from './acp.ts';

const OTHER = Buffer.alloc(32, 9).toString('base64');
const ring = (...keys: readonly (readonly [id: string, key: string])[]) => keys.map(([id, key]) => ({ id, key }));
const ids = (changes: Changes) => settings(changes).idempotency.keys.map(({ id }) => id);

describe('storage.sealing', () => {
  it('is one ring for payments and checkouts', () => {
    const keys = ring(['new', OTHER], ['k1', KEY]);
    const config = load(selling({ [KEYS]: keys }));
    assert.deepEqual(config.storage.sealing, [
      { id: 'new', key: Buffer.from(OTHER, 'base64') },
      { id: 'k1', key: Buffer.from(KEY, 'base64') },
    ]);
    assert.deepEqual(ids({ [KEYS]: keys }), ['new', 'k1']);
  });

  it('may be left out: nothing is sealed then, and it is recommended where money is taken and something stays', () => {
    const file = { storage: { sqlite: { path: 'gateway.db' } } };
    assert.equal(load(file).storage.sealing, undefined);
    assert.match(configWarnings(load(file)).join('\n'), /^storage\.sealing\.keys: missing.*openssl rand -base64 32$/);
    assert.deepEqual(configWarnings(load({})), [], 'what is only in memory is stored nowhere');
    assert.deepEqual(configWarnings(load({ ...file, [KEYS]: [{ id: 'k1', key: KEY }] })), []);
  });

  it('counts as secret in each spelling', () => {
    const secrets = secretsOf(load({ [KEYS]: [{ id: 'k1', key: KEY }] }));
    for (const spelling of ['base64url', 'hex'] as const)
      assert.ok(secrets.includes(Buffer.from(KEY, 'base64').toString(spelling)));
  });
});
