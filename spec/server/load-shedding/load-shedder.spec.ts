import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { createLoadShedder, createShedding, type Shedding } from '../../../src/server/load-shedding/load-shedder.ts';

const LIMIT = 20;

describe('the decision about a call', () => {
  for (const [title, overloaded, inFlight, free, reason, counted] of [
    ['admits it while the process is not overloaded, whatever is in flight', false, LIMIT + 1, true, undefined, []],
    ['admits it below the limit of an overload', true, LIMIT - 1, true, undefined, [false]],
    ['refuses it at the limit, and counts that', true, LIMIT, true, 'overload', [true]],
    ['refuses it without a free slot', false, 0, false, 'in_flight', []],
    ['refuses it without a free slot in an overload', true, 0, false, 'in_flight', [false]],
    ['names the overload where both hold', true, LIMIT, false, 'overload', [true]],
  ] as const)
    it(title, () => {
      const cameWith: boolean[] = [];
      let turns = 0;
      const came = (): void => {
        turns += 1;
      };
      const shedding = createShedding({
        slots: { free: () => free, inFlight: () => inFlight },
        overload: { overloaded, limit: LIMIT, came: (refused) => void cameWith.push(refused) },
        turns: { came },
      });
      assert.equal(shedding(), reason);
      assert.deepEqual([cameWith, turns], [counted, 1]);
    });
});

describe('the load shedder', () => {
  /** Whether it decides about this request, which it lets pass. */
  const decides = (method: string, url: string, shedding: Shedding = () => undefined): boolean => {
    let decisions = 0;
    const loadShedder = createLoadShedder({
      shedding: () => {
        decisions += 1;
        return shedding();
      },
      mounts: new Map([
        ['/mcp', 'mcp'],
        ['/acp/checkout_sessions', 'acp'],
      ]),
      draining: () => false,
      onShed: () => assert.fail('nothing is shed here'),
      routeOf: ({ url: target }) => ({ kind: { '/reports/x': 'in_place', '/blog': 'pass' }[target ?? ''] ?? 'own' }),
    });
    assert.equal(loadShedder({ method, url, headers: {} } as IncomingMessage, {} as ServerResponse), false);
    return decisions === 1;
  };

  for (const [title, method, url, decided] of [
    ['lets every GET pass', 'GET', '/ready', false],
    ['decides about a call', 'POST', '/api/resources/a/invoke', true],
    ['decides about a message', 'POST', '/mcp?x=1', true],
    ['leaves a checkout to its adapter, which first checks the caller', 'POST', '/acp/checkout_sessions?x=1', false],
    ["decides about a GET at the backend's own address", 'GET', '/reports/x', true],
    ['leaves what passes to the admission of the passthrough', 'POST', '/blog', false],
  ] as const)
    it(title, () => assert.equal(decides(method, url), decided));

  it('lets a message pass without a free slot: it is refused in the format of its protocol', () => {
    assert.equal(
      decides('POST', '/mcp', () => 'in_flight'),
      true,
    );
  });
});
