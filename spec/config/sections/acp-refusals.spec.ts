import { describe } from 'node:test';
import type { Row } from '../refusals.ts';
import { ACP, KEY, KEYS, ON_TRIAL, refuses, SECRET, TOKEN } from './acp.ts';

const AUTH = `${ACP}.auth`;
const BACKEND = `${ACP}.backend`;
const OPERATIONS = `${BACKEND}.operations`;
const OTHER_KEY = Buffer.alloc(32, 251);
const SHORT = 'fifteen-letters';

const auth = (...clients: readonly object[]) => ({ [AUTH]: { clients } });
const keys = (...listed: readonly string[]) => ({ [KEYS]: listed.map((key, index) => ({ id: `k${index}`, key })) });
const client = (id: string, ...tokens: readonly string[]) => ({ id, tokens });

const CALLERS: readonly Row[] = [
  ['no caller', AUTH, {}, /^is missing: .*token.*clients/],
  ['an empty token', AUTH, { token: '' }, /^is missing/],
  [
    'a token and clients',
    AUTH,
    { token: TOKEN, clients: [client('a', `${TOKEN}-2`)] },
    /exactly one of token and clients/,
  ],
  ['a token with a space', `${AUTH}.token`, 'two words that are long', /visible ASCII/],
  ['a token of 513 characters', `${AUTH}.token`, 't'.repeat(513), /at most 512/],
  ['a client without token', auth(client('a')), `${AUTH}.clients[0].tokens`, /1 to 4 tokens/],
  ['a client with five tokens', auth(client('a', ...'12345')), `${AUTH}.clients[0].tokens`, /1 to 4 tokens/],
  ['a client with an empty token alone', auth(client('a', '')), `${AUTH}.clients[0].tokens`, /not empty/],
  ['a client id with a slash', auth(client('a/b', TOKEN)), `${AUTH}.clients[0].id`, /1 to 64 letters/],
  ['two clients of one id', auth(client('a', TOKEN), client('a', `${TOKEN}2`)), `${AUTH}.clients[1].id`, /one entry/],
  [
    'one token for two clients',
    auth(client('a', TOKEN), client('b', TOKEN)),
    `${AUTH}.clients[1].tokens[0]`,
    /same as protocols\.acp\.auth\.clients\[0\]\.tokens\[0\]/,
  ],
  ['the operator’s token', { 'server.adminToken': TOKEN }, `${AUTH}.token`, /same as server\.adminToken/],
  [
    'the operator’s next token',
    { 'server.adminToken': 'operator-token-of-now', 'server.adminTokenNext': TOKEN },
    `${AUTH}.token`,
    /same as server\.adminTokenNext/,
  ],
  ['a short token', `${AUTH}.token`, SHORT, /at least 16 characters/],
  [
    'a short token behind a public URL',
    { ...ON_TRIAL, 'merchant.publicBaseUrl': 'https://shop.example', [AUTH]: { token: SHORT } },
    `${AUTH}.token`,
    /at least 16 characters/,
  ],
  [
    'a short token with Redis',
    {
      ...ON_TRIAL,
      'storage.sqlite': undefined,
      'storage.redis': { url: 'redis://127.0.0.1' },
      [AUTH]: { token: SHORT },
    },
    `${AUTH}.token`,
    /at least 16 characters/,
  ],
];

const SECRETS: readonly Row[] = [
  ['a secret of 31 characters', `${ACP}.idempotency.secret`, 's'.repeat(31), /32/],
  ['a token as the secret', { [AUTH]: { token: SECRET } }, `${ACP}.idempotency.secret`, /same as protocols\.acp\.auth/],
  ['the secret as a key', { [`${ACP}.idempotency.secret`]: KEY }, `${KEYS}[0].key`, /same as .*idempotency\.secret/],
  ['a token as a key', { [AUTH]: { token: KEY } }, `${KEYS}[0].key`, /same as protocols\.acp\.auth/],
  ['no key', KEYS, [], /1 to 8 keys/],
  ['a key of 31 bytes', keys(Buffer.alloc(31).toString('base64')), `${KEYS}[0].key`, /openssl rand -base64 32/],
  ['a key of 33 bytes', keys(Buffer.alloc(33).toString('base64')), `${KEYS}[0].key`, /openssl rand -base64 32/],
  ['a key as hexadecimal', keys(OTHER_KEY.toString('hex')), `${KEYS}[0].key`, /as base64/],
  [
    'one key twice in two spellings',
    keys(OTHER_KEY.toString('base64'), OTHER_KEY.toString('base64url')),
    `${KEYS}[1].key`,
    /same as .*keys\[0\]\.key/,
  ],
  [
    'two keys of one name',
    {
      [KEYS]: [
        { id: 'k', key: KEY },
        { id: 'k', key: OTHER_KEY.toString('base64') },
      ],
    },
    `${KEYS}[1].id`,
    /is there already/,
  ],
  ['a retention of less than a day', `${ACP}.idempotency.retentionHours`, 23, /24 to 720/],
  ['an unknown way to repeat', `${ACP}.idempotency.merchant`, 'again', /read-back-only/],
];

const BACKENDS: readonly Row[] = [
  ['a backend elsewhere that is not allowed', `${BACKEND}.baseUrl`, 'http://10.0.0.1', /allowNonLoopback/],
  ['a backend URL with a password', `${BACKEND}.baseUrl`, 'http://u:pass@127.0.0.1', /credentials/],
  [
    'an idempotency key for the backend',
    { [`${BACKEND}.headers`]: { 'Idempotency-Key': 'k' } },
    `${BACKEND}.headers.Idempotency-Key`,
    /sets itself/,
  ],
  ['a version of its own', `${BACKEND}.headers`, { 'API-Version': '1' }, /must not have api-version/],
  [
    'an inherited header that a call sets itself',
    { 'backend.headers': { Accept: '*/*' } },
    `${BACKEND}.headers`,
    /backend\.headers has accept/,
  ],
  [
    'an unknown operation, with the nearest',
    `${OPERATIONS}.completeCheckoutSesion`,
    {},
    /did you mean completeCheckoutSession/,
  ],
  ['a timeout of less than 100 ms', `${OPERATIONS}.getCheckoutSession.timeoutMs`, 99, /100 to 60000/],
  ['a timeout of more than a minute', `${OPERATIONS}.getCheckoutSession.timeoutMs`, 60_001, /100 to 60000/],
  ['a create with a session', `${OPERATIONS}.createCheckoutSession.path`, '/c/{checkout_session_id}', /no session yet/],
  [
    'a complete without a session',
    `${OPERATIONS}.completeCheckoutSession.path`,
    '/complete',
    /must have \{checkout_session_id\} once/,
  ],
  ['a session by another name', `${OPERATIONS}.getCheckoutSession.path`, '/c/{id}', /and no other/],
  ['a path that climbs', `${OPERATIONS}.getCheckoutSession.path`, '/../{checkout_session_id}', /normal form/],
  [
    'cancel where update is',
    `${OPERATIONS}.cancelCheckoutSession.path`,
    '/checkout_sessions/{checkout_session_id}',
    /must differ from that of updateCheckoutSession/,
  ],
];

const PUBLISHED: readonly Row[] = [
  ['a mount on the gateway’s own paths', `${ACP}.mountPath`, '/console', /own paths/],
  [
    'the mount of another adapter',
    { 'protocols.mcp.enabled': true, [`${ACP}.mountPath`]: '/mcp' },
    `${ACP}.mountPath`,
    /must differ from protocols\.mcp/,
  ],
  [
    'a mount below another adapter',
    { 'protocols.mcp.enabled': true, [`${ACP}.mountPath`]: '/mcp/acp' },
    `${ACP}.mountPath`,
    /above or below protocols\.mcp/,
  ],
  [
    'an adapter below its mount',
    { 'protocols.a2a': { enabled: true, mountPath: '/acp/agent' } },
    `${ACP}.mountPath`,
    /above or below protocols\.a2a/,
  ],
  ['a link that is none', `${ACP}.discovery.documentationUrl`, 'shop.example', /absolute http/],
  ['a link with a password', `${ACP}.discovery.documentationUrl`, 'https://u:pass@shop.example', /credentials/],
  [
    'a currency in capitals',
    { [`${ACP}.discovery.supportedCurrencies`]: ['EUR'] },
    `${ACP}.discovery.supportedCurrencies[0]`,
    /lower-case/,
  ],
  ['a currency twice', `${ACP}.discovery.supportedCurrencies`, ['eur', 'eur'], /different/],
  [
    'a language that is none',
    { [`${ACP}.discovery.supportedLocales`]: ['en_US'] },
    `${ACP}.discovery.supportedLocales[0]`,
    /en-US/,
  ],
  [
    'an unknown intervention',
    { [`${ACP}.discovery.interventionTypes`]: ['captcha'] },
    `${ACP}.discovery.interventionTypes[0]`,
    /3ds, biometric or address_verification/,
  ],
  ['no call at the same time', `${ACP}.limits.maxInFlight`, 0, /1 to 1024/],
  ['an unknown key', `${ACP}.strictSemantic`, true, /did you mean strictSemantics/],
];

for (const [title, rows] of Object.entries({ CALLERS, SECRETS, BACKENDS, PUBLISHED }))
  describe(`protocols.acp refuses (${title.toLowerCase()})`, () => refuses(rows));

describe('protocols.acp while it is off', () => {
  refuses([
    [
      'still refuses what the schema does not know',
      { [ACP]: { enabled: false, auth: { tokens: [] } } },
      `${AUTH}.tokens`,
      /did you mean token\?/,
    ],
    [
      'still refuses a mount on the gateway’s own paths',
      { [ACP]: { mountPath: '/api' } },
      `${ACP}.mountPath`,
      /own paths/,
    ],
  ]);
});
