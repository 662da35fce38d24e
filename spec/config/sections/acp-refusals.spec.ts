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
  ['a client with an empty token alone', auth(client('a', '')), `${AUTH}.clients[0].tokens`, /not empty/],
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
  ['a token as the secret', { [AUTH]: { token: SECRET } }, `${ACP}.idempotency.secret`, /same as protocols\.acp\.auth/],
  ['the secret as a key', { [`${ACP}.idempotency.secret`]: KEY }, `${KEYS}[0].key`, /same as .*idempotency\.secret/],
  ['a token as a key', { [AUTH]: { token: KEY } }, `${KEYS}[0].key`, /same as protocols\.acp\.auth/],
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
