import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parseConfig } from '../../../src/config/load.ts';
import { adaptersSummary, configWarnings } from '../../../src/config/warnings.ts';
import { load, PAYEE, problems } from '../document/document.ts';
import { at, file } from '../files.ts';
import { ACP, KEY, KEYS, ON_TRIAL, SECRET, selling, settings, TOKEN } from './acp.ts';

const SESSION = '/checkout_sessions/{checkout_session_id}';
const COMPLETE = `${ACP}.backend.operations.completeCheckoutSession`;

describe('protocols.acp', () => {
  it('is off, at /acp, and needs nothing then', () => {
    assert.deepEqual(load({}).protocols.acp, { enabled: false, mountPath: '/acp' });
    assert.deepEqual(load({ [ACP]: { auth: { token: '' } } }).protocols.acp, { enabled: false, mountPath: '/acp' });
  });

  it('needs a token, a secret and a key, and has the published defaults for the rest', () => {
    assert.deepEqual(settings(), {
      enabled: true,
      mountPath: '/acp',
      clients: [{ id: 'default', tokens: [TOKEN] }],
      backend: {
        origin: 'http://127.0.0.1:3000',
        headers: {},
        operations: {
          createCheckoutSession: { path: '/checkout_sessions', timeoutMs: 10_000 },
          updateCheckoutSession: { path: SESSION, timeoutMs: 10_000 },
          getCheckoutSession: { path: SESSION, timeoutMs: 10_000 },
          completeCheckoutSession: { path: `${SESSION}/complete`, timeoutMs: 25_000 },
          cancelCheckoutSession: { path: `${SESSION}/cancel`, timeoutMs: 10_000 },
        },
        scopesByClient: false,
      },
      idempotency: {
        retentionMs: 90_000_000,
        sessionKeepMs: 30 * 86_400_000,
        secret: Buffer.from(SECRET),
        keys: [{ id: 'k1', key: Buffer.from(KEY, 'base64') }],
        merchant: 'derived-key',
        sessionLock: true,
      },
      discovery: {},
      maxInFlight: 64,
      acceptLineItemQuantity: false,
      strictSemantics: false,
      authenticationErrors: false,
    });
  });

  it('names everything that is missing when it is switched on alone, and how to make it', () => {
    const found = problems({ [`${ACP}.enabled`]: true });
    assert.deepEqual(
      found.map(({ path }) => path),
      [KEYS, `${ACP}.auth`, `${ACP}.idempotency.secret`],
    );
    const [keys, auth, secret] = found.map(({ message }) => message);
    assert.match(auth ?? '', /^is missing: .*ACP_TOKEN/);
    for (const message of [keys ?? '', secret ?? '']) assert.match(message, /^is missing: .*openssl rand -base64 32/);
  });

  it('takes the token out of the environment, or out of the file that it names', () => {
    const without = { [`${ACP}.auth`]: undefined };
    const tokens = (env: Readonly<Record<string, string>>) => settings(without, env).clients[0]?.tokens;
    assert.deepEqual(tokens({ ACP_TOKEN: 'token-of-the-environment' }), ['token-of-the-environment']);
    assert.deepEqual(tokens({ ACP_TOKEN_FILE: file('token', 'token-of-a-mounted-file\n') }), [
      'token-of-a-mounted-file',
    ]);
  });

  it('lets several clients have several tokens each', () => {
    const clients = [
      { id: 'assistant', tokens: ['assistant-token-now', 'assistant-token-next'] },
      { id: 'other.one', tokens: ['token-of-the-other'] },
    ];
    assert.deepEqual(settings({ [`${ACP}.auth`]: { clients } }).clients, clients);
    const between = [{ id: 'a', tokens: [TOKEN, at('NEXT:-')] }];
    assert.deepEqual(settings({ [`${ACP}.auth`]: { clients: between } }).clients, [{ id: 'a', tokens: [TOKEN] }]);
  });

  it('reads a key in both alphabets, with and without padding, and out of a file', () => {
    const bytes = Buffer.alloc(32, 251);
    const spelled = [
      bytes.toString('base64'),
      bytes.toString('base64url'),
      at(`file:${file('key', bytes.toString('base64'))}`),
    ];
    for (const key of spelled) {
      const [first] = settings({ [KEYS]: [{ id: 'k', key }] }).idempotency.keys;
      assert.deepEqual(first, { id: 'k', key: bytes });
    }
  });

  it('finds the checkout below the backend of the resources, or at a URL of its own', () => {
    const base = { 'backend.baseUrl': 'http://localhost:3000/v2/', 'backend.headers': { 'X-Key': 'of-the-shop' } };
    const inherited = settings(base).backend;
    assert.equal(inherited.origin, 'http://localhost:3000');
    assert.deepEqual(inherited.headers, { 'x-key': 'of-the-shop' });
    assert.equal(inherited.operations.createCheckoutSession.path, '/v2/checkout_sessions');
    const own = settings({
      ...base,
      [`${ACP}.backend`]: { baseUrl: 'http://127.0.0.1:4000/pay', headers: { Authorization: 'Basic eDp5' } },
      [COMPLETE]: { path: '/index.php/{checkout_session_id}?route=complete', timeoutMs: 40_000 },
    }).backend;
    assert.equal(own.origin, 'http://127.0.0.1:4000');
    assert.deepEqual(own.headers, { authorization: 'Basic eDp5' });
    assert.deepEqual(own.operations.completeCheckoutSession, {
      path: '/pay/index.php/{checkout_session_id}?route=complete',
      timeoutMs: 40_000,
    });
    assert.deepEqual(own.operations.cancelCheckoutSession, { path: `/pay${SESSION}/cancel`, timeoutMs: 10_000 });
  });

  it('is read as the complete sample shows it', () => {
    const sample = readFileSync('deploy/examples/config.yaml', 'utf8');
    const [section = ''] = /^ {2}acp:[\s\S]*?(?=^payments:)/m.exec(sample) ?? [];
    const shown = section
      .replace('enabled: false', 'enabled: true')
      .replaceAll(/^ {4}# auth: \{ clients.*\n/gm, '')
      .replaceAll(/^ {4}# /gm, '    ')
      .replaceAll(/"\$\{file:([^}]+)\}"/g, (_, name: string) => (name.endsWith('secret') ? SECRET : KEY));
    const env = { ACP_TOKEN: TOKEN, PAY_TO: PAYEE };
    const sealed = sample
      .replace(section, shown)
      .replace(/^ {2}# (sealing:.*)\n {2}# ( {2}keys: .*)$/m, '  $1\n  $2')
      .replaceAll(/"\$\{file:[^}]*sealing-key\}"/g, KEY);
    const { protocols } = parseConfig(sealed, env);
    assert.ok(protocols.acp.enabled);
    const { clients, idempotency, backend, maxInFlight, discovery } = protocols.acp;
    assert.deepEqual(clients, [{ id: 'default', tokens: [TOKEN] }]);
    const { backend: defaults, idempotency: usual, maxInFlight: most } = settings();
    assert.deepEqual(backend, defaults, 'what is shown besides are the defaults');
    assert.deepEqual({ ...idempotency, keys: usual.keys }, usual);
    assert.deepEqual([maxInFlight, discovery.supportedCurrencies], [most, ['eur']]);
  });

  it('needs no resource beside it', () => {
    for (const resources of [{}, undefined]) assert.deepEqual(load(selling({ resources })).resources, []);
  });

  it('counts every token, the secret, the keys in each spelling and the headers as secrets', () => {
    const key = Buffer.alloc(32, 251);
    const secrets = load(
      selling({
        [`${ACP}.auth`]: { clients: [{ id: 'a', tokens: ['first-token-of-a-', 'other-token-of-a-'] }] },
        [KEYS]: [{ id: 'k', key: key.toString('base64') }],
        [`${ACP}.backend.headers`]: { 'x-key': 'key-of-the-merchant' },
      }),
    ).secrets;
    const listed = ['first-token-of-a-', 'other-token-of-a-', SECRET, 'key-of-the-merchant', key.toString('hex')];
    for (const secret of [...listed, key.toString('base64url'), key.toString('base64').slice(0, 43)])
      assert.ok(secrets.includes(secret), secret);
  });

  it('is in the summary of the adapters', () => {
    assert.equal(adaptersSummary(load(selling())), 'http (1), acp at /acp (checkout for 1 client)');
  });

  it('lets a gateway on this machine alone have a short token, and warns of it', () => {
    const { protocols } = load(selling({ ...ON_TRIAL, [`${ACP}.auth`]: { token: 'short' } }));
    assert.ok(protocols.acp.enabled);
    const warnings = configWarnings(load(selling({ ...ON_TRIAL, [`${ACP}.auth`]: { token: 'short' } })));
    assert.deepEqual(warnings, ['protocols.acp.auth: a token is shorter than 16 characters; use a long random one']);
    assert.deepEqual(configWarnings(load(selling())), []);
  });

  it('warns of payment data in clear, and of a bound without effect', () => {
    const clear = selling({ 'merchant.publicBaseUrl': 'http://shop.example' });
    assert.match(configWarnings(load(clear)).join('\n'), /^protocols\.acp: merchant\.publicBaseUrl is not https/m);
    const few = selling({ 'limits.maxInFlight': 10, [`${ACP}.limits.maxInFlight`]: 11 });
    assert.match(configWarnings(load(few)).join('\n'), /^protocols\.acp\.limits\.maxInFlight: more than/);
    assert.deepEqual(configWarnings(load({ ...few, [`${ACP}.limits.maxInFlight`]: 10 })), []);
  });
});
