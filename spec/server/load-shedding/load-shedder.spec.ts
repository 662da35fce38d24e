import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { createLoadShedder } from '../../../src/server/load-shedding/load-shedder.ts';

const MOUNTS = new Map([
  ['/mcp', 'mcp'],
  ['/acp/checkout_sessions', 'acp'],
]);

/** Whether the door asks if this request may come in. */
function asked(method: string, url: string): boolean {
  let questions = 0;
  const door = createLoadShedder({
    shedding: () => {
      questions += 1;
      return undefined;
    },
    mounts: MOUNTS,
    draining: () => false,
    onShed: () => assert.fail('nothing is shed here'),
  });
  assert.equal(door({ method, url, headers: {} } as IncomingMessage, {} as ServerResponse), false);
  return questions === 1;
}

describe('the door', () => {
  it('lets every question in', () => assert.equal(asked('GET', '/ready'), false));
  it('asks about a call', () => assert.equal(asked('POST', '/api/resources/a/invoke'), true));
  it('asks about a message', () => assert.equal(asked('POST', '/mcp?x=1'), true));

  it('does not ask about a checkout: its front does, once it knows who calls', () =>
    assert.equal(asked('POST', '/acp/checkout_sessions?x=1'), false));

  it('leaves it to a front to say that there is no place, in the words of its protocol', () => {
    const door = createLoadShedder({
      shedding: () => 'in_flight',
      mounts: MOUNTS,
      draining: () => false,
      onShed: () => assert.fail('the layer behind the front refuses'),
    });
    const request = { method: 'POST', url: '/mcp', headers: {} } as IncomingMessage;
    assert.equal(door(request, {} as ServerResponse), false);
  });
});
