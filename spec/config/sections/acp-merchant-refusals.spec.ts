import { describe } from 'node:test';
import type { Row } from '../refusals.ts';
import { ACP, refuses } from './acp.ts';

const BACKEND = `${ACP}.backend`;
const OPERATIONS = `${BACKEND}.operations`;

const path = (operation: string, template: string) => ({ [`${OPERATIONS}.${operation}.path`]: template });

const MERCHANT: readonly Row[] = [
  [
    'a merchant elsewhere unasked',
    { [`${BACKEND}.baseUrl`]: 'http://10.0.0.1' },
    `${BACKEND}.baseUrl`,
    /allowNonLoopback/,
  ],
  [
    'a merchant with a password',
    { [`${BACKEND}.baseUrl`]: 'http://u:pass@127.0.0.1' },
    `${BACKEND}.baseUrl`,
    /credentials/,
  ],
  [
    'a key of its own for the merchant',
    { [`${BACKEND}.headers`]: { 'Idempotency-Key': 'k' } },
    `${BACKEND}.headers.Idempotency-Key`,
    /sets itself/,
  ],
  [
    'a version of its own',
    { [`${BACKEND}.headers`]: { 'API-Version': '1' } },
    `${BACKEND}.headers`,
    /must not have api-version/,
  ],
  [
    'an inherited header that a call says itself',
    { 'backend.headers': { Accept: '*/*' } },
    `${BACKEND}.headers`,
    /backend\.headers has accept/,
  ],
  [
    'an unknown operation, with the nearest',
    { [`${OPERATIONS}.completeCheckoutSesion`]: {} },
    `${OPERATIONS}.completeCheckoutSesion`,
    /did you mean completeCheckoutSession/,
  ],
  [
    'a timeout of less than 100 ms',
    { [`${OPERATIONS}.getCheckoutSession.timeoutMs`]: 99 },
    `${OPERATIONS}.getCheckoutSession.timeoutMs`,
    /100 to 60000/,
  ],
  [
    'a timeout of more than a minute',
    { [`${OPERATIONS}.getCheckoutSession.timeoutMs`]: 60_001 },
    `${OPERATIONS}.getCheckoutSession.timeoutMs`,
    /100 to 60000/,
  ],
  [
    'a create with a session',
    path('createCheckoutSession', '/c/{checkout_session_id}'),
    `${OPERATIONS}.createCheckoutSession.path`,
    /no session yet/,
  ],
  [
    'a complete without a session',
    path('completeCheckoutSession', '/complete'),
    `${OPERATIONS}.completeCheckoutSession.path`,
    /must have \{checkout_session_id\} once/,
  ],
  [
    'a session by another name',
    path('getCheckoutSession', '/c/{id}'),
    `${OPERATIONS}.getCheckoutSession.path`,
    /and no other/,
  ],
  [
    'a path that climbs',
    path('getCheckoutSession', '/../{checkout_session_id}'),
    `${OPERATIONS}.getCheckoutSession.path`,
    /normal form/,
  ],
  [
    'cancel where update is',
    path('cancelCheckoutSession', '/checkout_sessions/{checkout_session_id}'),
    `${OPERATIONS}.cancelCheckoutSession.path`,
    /must differ from that of updateCheckoutSession/,
  ],
];

const PUBLISHED: readonly Row[] = [
  ['a mount on the gateway’s own paths', { [`${ACP}.mountPath`]: '/console' }, `${ACP}.mountPath`, /own paths/],
  [
    'the mount of another front',
    { 'protocols.mcp.enabled': true, [`${ACP}.mountPath`]: '/mcp' },
    `${ACP}.mountPath`,
    /must differ from protocols\.mcp/,
  ],
  [
    'a mount below another front',
    { 'protocols.mcp.enabled': true, [`${ACP}.mountPath`]: '/mcp/acp' },
    `${ACP}.mountPath`,
    /above or below protocols\.mcp/,
  ],
  [
    'a front below its mount',
    { 'protocols.a2a': { enabled: true, mountPath: '/acp/agent' } },
    `${ACP}.mountPath`,
    /above or below protocols\.a2a/,
  ],
  [
    'a link that is none',
    { [`${ACP}.discovery.documentationUrl`]: 'shop.example' },
    `${ACP}.discovery.documentationUrl`,
    /absolute http/,
  ],
  [
    'a link with a password',
    { [`${ACP}.discovery.documentationUrl`]: 'https://u:pass@shop.example' },
    `${ACP}.discovery.documentationUrl`,
    /credentials/,
  ],
  [
    'a currency in capitals',
    { [`${ACP}.discovery.supportedCurrencies`]: ['EUR'] },
    `${ACP}.discovery.supportedCurrencies[0]`,
    /lower-case/,
  ],
  [
    'a currency twice',
    { [`${ACP}.discovery.supportedCurrencies`]: ['eur', 'eur'] },
    `${ACP}.discovery.supportedCurrencies`,
    /different/,
  ],
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
  ['no call at the same time', { [`${ACP}.limits.maxInFlight`]: 0 }, `${ACP}.limits.maxInFlight`, /1 to 1024/],
  ['an unknown word', { [`${ACP}.strictSemantic`]: true }, `${ACP}.strictSemantic`, /did you mean strictSemantics/],
];

for (const [title, rows] of Object.entries({ MERCHANT, PUBLISHED }))
  describe(`protocols.acp refuses (${title.toLowerCase()})`, () => refuses(rows));
