import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type { Operation } from '../../src/checkouts/operations.ts';
import { askAcp, assertAcpError, CART, OTHER_TOKEN, TOKEN } from '../adapters/acp/testbed.ts';
import { type CheckoutBackend, startCheckoutBackend } from '../support/acp/checkout-backend.ts';
import { type CheckoutGateway, startCheckoutGateway } from '../support/acp/gateway.ts';
import type { ConfigObject } from '../support/config.ts';
import type { HttpExchange } from '../support/http-server.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { documentIn, paymentWith } from './acp-assistant.ts';
import type { Answered } from './ask.ts';

/** Operations on a session, as an agent makes them. */
const ON_SESSION = {
  getCheckoutSession: { method: 'GET', path: '' },
  updateCheckoutSession: { method: 'POST', path: '', body: { order_notes: 'ring twice' } },
  cancelCheckoutSession: { method: 'POST', path: '/cancel', body: {} },
  completeCheckoutSession: { method: 'POST', path: '/complete', body: paymentWith('tok_1') },
} as const satisfies Partial<Record<Operation, object>>;
type OnSession = keyof typeof ON_SESSION;
const OPERATIONS = Object.keys(ON_SESSION) as readonly OnSession[];

const TOKENS = { owner: TOKEN, other: OTHER_TOKEN, wrong: 'token-of-no-client-at-all' } as const;
type Caller = keyof typeof TOKENS;

const SETTINGS = {
  'two clients': {},
  'two clients, of a merchant that keeps them apart': { backend: { scopesByClient: true } },
  'one client': { auth: { clients: [{ id: 'assistant', tokens: [TOKEN] }] } },
} as const satisfies Readonly<Record<string, ConfigObject>>;
type SettingsName = keyof typeof SETTINGS;
const SCOPED: SettingsName = 'two clients, of a merchant that keeps them apart';

/**
 * What a caller gets of a session that the owner opened, and whether the backend is called.
 */
type Verdict = 'served' | 'absent' | 'unauthorized';
const VERDICTS: readonly (readonly [settings: SettingsName, remembered: boolean, caller: Caller, verdict: Verdict])[] =
  [
    ['two clients', true, 'other', 'absent'],
    ['two clients', false, 'owner', 'absent'],
    [SCOPED, true, 'owner', 'served'],
    // The backend gets the name of the client, and decides.
    [SCOPED, false, 'other', 'absent'],
    ['one client', true, 'other', 'unauthorized'],
    ['one client', false, 'owner', 'served'],
  ];

describe('a checkout session of one client, through two replicas on one Redis', () => {
  let redis: TestRedis;
  let admin: Redis;
  let backend: CheckoutBackend;
  const replicas = new Map<SettingsName, readonly CheckoutGateway[]>();
  /** The owner of each session, for a merchant that keeps clients apart. */
  const openedFor = new Map<string, string>();
  let turnedAway = 0;
  before(async () => {
    redis = await startRedis();
    admin = new Redis({ path: redis.socketPath });
    // The last test ends the server.
    admin.on('error', () => undefined);
    backend = await startCheckoutBackend({ before: keepsApart });
    for (const [name, acp] of Object.entries(SETTINGS)) {
      const parts = {
        backendUrl: backend.url,
        storage: { redis: { url: redis.url } },
        acp,
        // More wrong tokens than one network may try.
        overrides: { merchant: { id: name.replaceAll(/[^a-z]+/g, '-') }, server: { trustProxy: 1 } },
      };
      replicas.set(name as SettingsName, [await startCheckoutGateway(parts), await startCheckoutGateway(parts)]);
    }
  });
  after(async () => {
    for (const gateways of replicas.values()) for (const gateway of gateways) await gateway.stop();
    await backend?.stop();
    admin?.disconnect();
    await redis?.stop();
  });

  /**
   * Answers 404 for a session that was opened for another client, as `scopesByClient` promises.
   */
  function keepsApart({ request, response }: HttpExchange): boolean {
    const owner = openedFor.get(/^\/checkout_sessions\/([^/]+)/.exec(request.url ?? '')?.[1] ?? '');
    if (owner === undefined || owner === request.headers['agent-commerce-client']) return false;
    turnedAway += 1;
    response.writeHead(404).end();
    return true;
  }

  let turn = 0;
  const ask = (name: SettingsName, caller: Caller, asked: Parameters<typeof askAcp>[1]): Promise<Answered> => {
    turn += 1;
    const gateway = replicas.get(name)?.[turn % 2] ?? assert.fail('no gateway');
    const headers = {
      authorization: `Bearer ${TOKENS[caller]}`,
      'x-forwarded-for': `203.0.${turn >> 8}.${turn & 255}`,
      'agent-commerce-client': 'another-client',
      ...asked?.headers,
    };
    return askAcp(gateway.url, { ...asked, headers });
  };
  const open = async (name: SettingsName): Promise<string> => {
    const id = String(documentIn(await ask(name, 'owner', { body: CART }), 201)['id']);
    // With the other settings the merchant serves every client: the gateway alone keeps them apart.
    if (name === SCOPED) openedFor.set(id, 'assistant');
    return id;
  };

  for (const [name, remembered, caller, verdict] of VERDICTS)
    for (const operation of OPERATIONS) {
      const who = caller === 'wrong' ? 'a wrong token' : caller === 'other' ? 'another client’s token' : 'its owner';
      it(`${name}, ${remembered ? 'known' : 'after a loss of the store'}: ${operation} with ${who}: ${verdict}`, async () => {
        const id = await open(name);
        if (!remembered) await admin.flushall();
        const { path, ...asked } = ON_SESSION[operation];
        const before = backend.calls.length;
        turnedAway = 0;
        const answer = await ask(name, caller, { ...asked, path: `/checkout_sessions/${id}${path}` });
        const calls = backend.calls.slice(before);
        if (verdict === 'served') {
          assert.equal(documentIn(answer, 200)['id'], id);
          assert.equal(calls.length, 1);
          assert.equal(
            calls[0]?.headers['agent-commerce-client'],
            'assistant',
            'the configured id, not the caller’s word',
          );
          return;
        }
        if (verdict === 'unauthorized') assertAcpError(answer, 401, 'unauthorized');
        else assertAcpError(answer, 404, 'checkout_session_not_found');
        const decides = name === SCOPED && !remembered && caller === 'other';
        assert.equal(turnedAway, decides ? 1 : 0);
        assert.deepEqual(calls, [], 'the merchant does nothing of it');
        assert.equal(backend.orders(id), 0);
        assert.equal(backend.session(id)?.status, 'ready_for_payment');
      });
    }

  it('another client gets the same bytes as for a session that does not exist', async () => {
    const id = await open('two clients');
    for (const operation of OPERATIONS) {
      const { path, ...asked } = ON_SESSION[operation];
      const headers = { 'idempotency-key': asked.method === 'POST' ? 'one-key' : undefined };
      const [foreign, none] = [
        await ask('two clients', 'other', { ...asked, path: `/checkout_sessions/${id}${path}`, headers }),
        await ask('two clients', 'other', { ...asked, path: `/checkout_sessions/cs_never${path}`, headers }),
      ];
      const comparable = ({ status, text, headers: got }: Answered) => {
        const { date: _date, 'x-request-id': _id, ...others } = got;
        return { status, text, others };
      };
      assert.deepEqual(comparable(foreign), comparable(none));
    }
  });

  it('a refused call keeps nothing: the owner’s session, and the key of the other client, are as before', async () => {
    const id = await open('two clients');
    const body = paymentWith('tok_1');
    const headers = { 'idempotency-key': 'of-both' };
    const path = `/checkout_sessions/${id}/complete`;
    assertAcpError(await ask('two clients', 'other', { path, body, headers }), 404, 'checkout_session_not_found');
    assert.equal(documentIn(await ask('two clients', 'owner', { path, body, headers }), 200)['status'], 'completed');
    assertAcpError(await ask('two clients', 'other', { path, body, headers }), 404, 'checkout_session_not_found');
    assert.equal(backend.orders(id), 1);
  });
});
