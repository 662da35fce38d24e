import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { createLoadShedder, createShedding, type ShedReason } from '../../../src/server/load-shedding/load-shedder.ts';

const LIMIT = 20;

/** What happens when a call comes, and what was told of it. */
function shed(scene: { readonly overloaded: boolean; readonly inFlight: number; readonly free?: boolean }): {
  readonly reason: ShedReason | undefined;
  readonly counted: readonly boolean[];
  readonly seen: number;
} {
  const counted: boolean[] = [];
  let seen = 0;
  const shedding = createShedding({
    places: { free: () => scene.free ?? true, inFlight: () => scene.inFlight },
    pressure: { overloaded: scene.overloaded, limit: LIMIT, came: (refused) => void counted.push(refused) },
    turns: {
      came: () => {
        seen += 1;
      },
    },
  });
  return { reason: shedding(), counted, seen };
}

describe('a call', () => {
  it('comes in while the process is not overloaded, whatever is in flight', () => {
    assert.deepEqual(shed({ overloaded: false, inFlight: LIMIT + 1 }), { reason: undefined, counted: [], seen: 1 });
  });

  it('comes in below the limit of an overload', () => {
    assert.deepEqual(shed({ overloaded: true, inFlight: LIMIT - 1 }), { reason: undefined, counted: [false], seen: 1 });
  });

  it('is refused at the limit, and counted', () => {
    assert.deepEqual(shed({ overloaded: true, inFlight: LIMIT }), { reason: 'overload', counted: [true], seen: 1 });
  });

  it('is refused for want of a place, overloaded or not', () => {
    assert.equal(shed({ overloaded: false, inFlight: 0, free: false }).reason, 'in_flight');
    assert.equal(shed({ overloaded: true, inFlight: 0, free: false }).reason, 'in_flight');
  });

  it('is refused for the overload where both hold: that is what the caller can do something about', () => {
    assert.equal(shed({ overloaded: true, inFlight: LIMIT, free: false }).reason, 'overload');
  });
});

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
