import { describe } from 'node:test';
import type { Row } from '../refusals.ts';
import { ACP, KEY, KEYS, ON_TRIAL, refuses, SECRET, TOKEN } from './acp.ts';

const AUTH = `${ACP}.auth`;
const OTHER_KEY = Buffer.alloc(32, 251);
const SHORT = 'fifteen-letters';

const auth = (...clients: readonly object[]) => ({ [AUTH]: { clients } });
const keys = (...listed: readonly string[]) => ({ [KEYS]: listed.map((key, index) => ({ id: `k${index}`, key })) });
const client = (id: string, ...tokens: readonly string[]) => ({ id, tokens });

const CALLERS: readonly Row[] = [
  ['no caller', { [AUTH]: {} }, AUTH, /^is missing: .*token.*clients/],
  ['an empty token', { [AUTH]: { token: '' } }, AUTH, /^is missing/],
  [
    'a token and clients',
    { [AUTH]: { token: TOKEN, clients: [client('a', `${TOKEN}-2`)] } },
    AUTH,
    /exactly one of token and clients/,
  ],
  ['a token with a space', { [AUTH]: { token: 'two words that are long' } }, `${AUTH}.token`, /visible ASCII/],
  ['a token of 513 characters', { [AUTH]: { token: 't'.repeat(513) } }, `${AUTH}.token`, /at most 512/],
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
  ['a short token', { [AUTH]: { token: SHORT } }, `${AUTH}.token`, /at least 16 characters/],
  [
    'a short token in a shop with a public name',
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
  ['a secret of 31 characters', { [`${ACP}.idempotency.secret`]: 's'.repeat(31) }, `${ACP}.idempotency.secret`, /32/],
  ['a token as the secret', { [AUTH]: { token: SECRET } }, `${ACP}.idempotency.secret`, /same as protocols\.acp\.auth/],
  ['the secret as a key', { [`${ACP}.idempotency.secret`]: KEY }, `${KEYS}[0].key`, /same as .*idempotency\.secret/],
  ['no key', { [KEYS]: [] }, KEYS, /1 to 8 keys/],
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
  [
    'a retention of less than a day',
    { [`${ACP}.idempotency.retentionHours`]: 23 },
    `${ACP}.idempotency.retentionHours`,
    /24 to 720/,
  ],
  [
    'an unknown way to repeat',
    { [`${ACP}.idempotency.merchant`]: 'again' },
    `${ACP}.idempotency.merchant`,
    /read-back-only/,
  ],
];

for (const [title, rows] of Object.entries({ CALLERS, SECRETS }))
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
