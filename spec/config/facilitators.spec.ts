import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { type Changes, load, MAINNET } from './document/document.ts';
import { type Row, refuses } from './refusals.ts';

const X = 'payments.x402';
const F = `${X}.facilitator`;
const NODE = { [`${X}.rpcUrl`]: 'https://rpc.example' };
const LOCAL = { mode: 'local', privateKey: `0x${'1'.repeat(64)}` };
const fallback = (url: unknown, more: object = {}): Changes => ({ [`${F}.fallbacks`]: [{ url, ...more }] });
const many = (count: number): Changes => ({
  [`${F}.fallbacks`]: Array.from({ length: count }, (_, i) => ({ url: `https://f${i}.example` })),
});

describe('who confirms a settlement', () => {
  const rows: readonly (readonly [what: string, changes: Changes, confirm: string])[] = [
    ['the chain, when there is a node', NODE, 'receipt'],
    ['the chain, when there is a node and it is configured', { ...NODE, [`${X}.confirm`]: 'receipt' }, 'receipt'],
    ['the facilitator, when there is none', {}, 'facilitator'],
    ['the facilitator, when it is configured', { ...NODE, [`${X}.confirm`]: 'facilitator' }, 'facilitator'],
    ['the chain, when the gateway settles', { ...NODE, [F]: LOCAL }, 'receipt'],
  ];
  for (const [what, changes, confirm] of rows)
    it(`${what}: ${confirm}`, () => assert.equal(load(changes).x402?.confirm, confirm));
});

describe('a payment that the store has lost', () => {
  it('is delivered, unless configured otherwise', () => {
    assert.equal(load({}).x402?.onStoreLoss, 'deliver');
    assert.equal(load({ [`${X}.onStoreLoss`]: 'refuse' }).x402?.onStoreLoss, 'refuse');
  });
});

describe('how deep a payment must be', () => {
  it('is one block unless more are configured', () => {
    assert.equal(load(NODE).x402?.confirmations, 1);
    assert.equal(load({ ...NODE, [`${X}.confirmations`]: 12 }).x402?.confirmations, 12);
  });
});

describe('several facilitators', () => {
  it('are asked in the order of the file, without credentials unless given', () => {
    const auth = { type: 'bearer', token: 'second-token' };
    const facilitator = load({
      ...fallback('https://two.example/x402/', { auth }),
      [`${F}.url`]: 'https://one.example/',
    }).x402?.facilitator;
    assert.deepEqual(facilitator, {
      mode: 'remote',
      url: 'https://one.example',
      auth: { type: 'none' },
      fallbacks: [{ url: 'https://two.example/x402', auth }],
    });
    assert.deepEqual(load(many(4)).x402?.facilitator.mode, 'remote');
  });

  it('keep their tokens and the keys in their paths out of the log', () => {
    const config = load(
      fallback('https://two.example/v1/0123456789abcdef0123', { auth: { type: 'bearer', token: 'second-token' } }),
    );
    const secrets = config.secrets;
    for (const secret of ['second-token', '0123456789abcdef0123']) assert.ok(secrets.includes(secret), secret);
  });

  it('are this machine only when all of them are', () => {
    const local = { [`${X}.rpcUrl`]: 'http://127.0.0.1:8545', [`${F}.url`]: 'http://localhost:4020' };
    assert.equal(load({ ...local, ...fallback('http://localhost:4021') }).x402?.mode, 'local');
    assert.equal(load({ ...local, ...fallback('https://two.example') }).x402?.mode, 'testnet');
  });
});

describe('a login at Coinbase', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = String(privateKey.export({ type: 'sec1', format: 'pem' })).trim();
  const loginOf = (keySecret: string): unknown => {
    const auth = { type: 'cdp', keyId: 'one', keySecret };
    const facilitator = load({ [`${F}.auth`]: auth, ...fallback('https://two.example', { auth }) }).x402?.facilitator;
    return facilitator?.mode === 'remote' ? [facilitator.auth, facilitator.fallbacks[0]?.auth] : undefined;
  };

  for (const [what, text] of [
    ['as it is in a file', `${pem}\n`],
    ['with \\n for its line ends', pem.replaceAll('\n', '\\n')],
  ] as const)
    it(`takes a PEM ${what}`, () => {
      const auth = { type: 'cdp', keyId: 'one', keySecret: pem };
      assert.deepEqual(loginOf(text), [auth, auth]);
    });
});

describe('start-up refuses (facilitators)', () => {
  const at = `${F}.fallbacks[0].url`;
  const rows: readonly Row[] = [
    ['receipts without a node', `${X}.confirm`, 'receipt', /or set rpcUrl/],
    [
      'blocks with the claim of a facilitator',
      { ...NODE, [`${X}.confirm`]: 'facilitator', [`${X}.confirmations`]: 2 },
      `${X}.confirmations`,
      /must be 1, or needs rpcUrl and confirm: receipt/,
    ],
    ['blocks without a node', `${X}.confirmations`, 2, /needs rpcUrl/],
    [
      'the claim of a facilitator that is this gateway',
      { ...NODE, [F]: LOCAL, [`${X}.confirm`]: 'facilitator' },
      `${X}.confirm`,
      /must be receipt/,
    ],
    [
      "real money by a facilitator's claim",
      { ...MAINNET, [`${X}.confirm`]: 'facilitator' },
      `${X}.confirm`,
      /must be receipt on a mainnet/,
    ],
    ['real money over plain http', { ...MAINNET, ...fallback('http://two.example') }, at, /https on a mainnet/],
    [
      'a login at Coinbase without its secret',
      { [`${F}.auth`]: { type: 'cdp', keyId: 'one' } },
      `${F}.auth.keySecret`,
      /is missing/,
    ],
    [
      'a login at Coinbase with another secret',
      { [`${F}.auth`]: { type: 'cdp', keyId: 'one', keySecret: 'secret' } },
      `${F}.auth.keySecret`,
      /must be the whole secret of a CDP API key/,
    ],
    [
      'a bearer with the id of a key',
      { [`${F}.auth`]: { type: 'bearer', token: 'token', keyId: 'one' } },
      `${F}.auth.keyId`,
      /not used with type: bearer/,
    ],
    ['the same facilitator twice', fallback('https://Facilitator.example/'), at, /is there already/],
    [
      'the same fallback twice',
      { [`${F}.fallbacks`]: [{ url: 'https://two.example' }, { url: 'https://two.example:443/' }] },
      `${F}.fallbacks[1].url`,
      /is there already/,
    ],
    ['a fallback that is no URL', fallback('two.example'), at, /absolute http/],
    [
      'fallbacks of a local facilitator',
      { ...NODE, [F]: { ...LOCAL, fallbacks: [] } },
      `${F}.fallbacks`,
      /is not used with mode: local/,
    ],
  ];
  refuses(rows);
});
