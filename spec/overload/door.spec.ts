import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { createDoor, SHORTEST_PAID_MESSAGE_BYTES } from '../../src/overload/door.ts';

const MOUNTS = new Map([['/mcp', 'mcp']]);
const SHORT = String(SHORTEST_PAID_MESSAGE_BYTES - 1);
const LONG = String(SHORTEST_PAID_MESSAGE_BYTES);

/** What the door asks about a request: nothing, or whether it may pay. */
function asked(method: string, url: string, headers: Readonly<Record<string, string>>): readonly boolean[] {
  const questions: boolean[] = [];
  const door = createDoor({
    shedding: (mayPay) => {
      questions.push(mayPay);
      return undefined;
    },
    mounts: MOUNTS,
    draining: () => false,
    onShed: () => assert.fail('nothing is shed here'),
  });
  assert.equal(door({ method, url, headers } as IncomingMessage, {} as ServerResponse), false);
  return questions;
}

describe('the door', () => {
  const CASES: readonly (readonly [string, string, string, Record<string, string>, boolean | undefined])[] = [
    ['lets every question in', 'GET', '/ready', {}, undefined],
    ['knows a first step: no proof in sight', 'POST', '/api/resources/a/invoke', { 'content-length': LONG }, false],
    ['knows a second step by its header', 'POST', '/api/resources/a/invoke', { 'payment-signature': 'x' }, true],
    ['knows that a short message holds no proof', 'POST', '/mcp', { 'content-length': SHORT }, false],
    ['takes a longer one for a payment', 'POST', '/mcp', { 'content-length': LONG }, true],
    ['and one whose length nobody says', 'POST', '/mcp?x=1', {}, true],
    ['and one with the header', 'POST', '/mcp', { 'content-length': SHORT, 'payment-signature': 'x' }, true],
  ];
  for (const [title, method, url, headers, mayPay] of CASES)
    it(title, () => assert.deepEqual(asked(method, url, headers), mayPay === undefined ? [] : [mayPay]));

  it('leaves it to a front to say that there is no place, in the words of its protocol', () => {
    const door = createDoor({
      shedding: () => 'in_flight',
      mounts: MOUNTS,
      draining: () => false,
      onShed: () => assert.fail('the layer behind the front refuses'),
    });
    const request = { method: 'POST', url: '/mcp', headers: {} } as IncomingMessage;
    assert.equal(door(request, {} as ServerResponse), false);
  });
});
