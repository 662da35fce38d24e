import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Sent, send, sharedRoutes } from './world.ts';

const JSON_TYPE = { 'content-type': 'application/json', 'a2a-version': '1.0', 'x-request-id': 'one-id' };
/** A target that the shortcut takes, and the same with an empty query, which the router takes. */
const TARGETS = [
  '/api/resources/cities/invoke',
  '/api/resources/market_report/invoke',
  '/api/resources/unknown/invoke',
  '/mcp',
  '/a2a',
  '/a2a/',
] as const;

const call = (method: string, params: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
const BODIES: Readonly<Record<string, string>> = {
  'an empty object': '{}',
  'broken JSON': '{',
  'an input': JSON.stringify({ city: 'Berlin' }),
  'tools/list': call('tools/list', {}),
  'tools/call': call('tools/call', { name: 'cities', arguments: {} }),
};
const HEADERS: Readonly<Record<string, Sent['headers']>> = {
  'no other headers': {},
  'another type': { 'content-type': 'text/plain' },
  'a page of another origin': { origin: 'https://evil.example' },
  'two idempotency keys': { 'idempotency-key': ['a', 'b'] },
  'a repeated authorization': { authorization: ['a', 'b'] },
  'a compressed body': { 'content-encoding': 'gzip' },
};

/** What differs between two answers to the same call. */
const UNSTEADY = /"(expiresAt|extra|id|contextId|artifactId|messageId|timestamp|token)":("[^"]*"|\{[^}]*\})/g;
const steady = (text: string): string => text.replaceAll(UNSTEADY, '"$1":…').replaceAll(/[A-Za-z0-9_-]{72}/g, 'token');

describe('a call by the exact spelling of its path', () => {
  const world = sharedRoutes();
  const answer = async (method: string, target: string, sent: Sent) => {
    const { status, headers, text } = await send(world().agents, method, target, sent);
    const { date: _, 'payment-required': offer, 'content-length': length, ...rest } = headers;
    return {
      status,
      headers: rest,
      hasOffer: offer !== undefined,
      length: Number(length) > 0,
      text: steady(text ?? ''),
    };
  };
  for (const target of TARGETS) {
    for (const [what, body] of Object.entries(BODIES))
      it(`is answered as by another spelling: POST ${target} with ${what}`, async () => {
        const sent = { headers: JSON_TYPE, body };
        assert.deepEqual(await answer('POST', target, sent), await answer('POST', `${target}?`, sent));
      });
    for (const [what, headers] of Object.entries(HEADERS))
      it(`is checked as by another spelling: POST ${target} with ${what}`, async () => {
        const sent = { headers: { ...JSON_TYPE, ...headers }, body: '{}' };
        assert.deepEqual(await answer('POST', target, sent), await answer('POST', `${target}?`, sent));
      });
    it(`is no other method: ${target}`, async () => {
      for (const method of ['GET', 'PUT', 'HEAD', 'OPTIONS', 'DELETE'])
        assert.deepEqual(
          await answer(method, target, { headers: JSON_TYPE }),
          await answer(method, `${target}?`, { headers: JSON_TYPE }),
        );
    });
  }
});
