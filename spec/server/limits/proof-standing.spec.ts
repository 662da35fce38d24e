import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import { ProofStanding, REFUSED_IN_SUCCESSION } from '../../../src/server/limits/load-shedder.ts';

/** A request on a connection of its own. */
const from = (network: string): IncomingMessage => ({ socket: { network } }) as unknown as IncomingMessage;
const standings = (): ProofStanding =>
  new ProofStanding(({ socket }) => (socket as unknown as { readonly network: string }).network);

describe('the standing of a request', () => {
  it('is usual at first', () => assert.equal(standings().of(from('a'), 'a'), 'usual'));

  it('is that of a buyer for the next requests of a connection that bought something, and not for ever', () => {
    const proofs = standings();
    const req = from('a');
    proofs.note(req, 'bought');
    const next = Array.from({ length: 12 }, () => proofs.of(req, 'a'));
    assert.deepEqual(next, [...Array(8).fill('paid'), ...Array(4).fill('usual')]);
    assert.equal(proofs.of(from('a'), 'a'), 'usual', 'another connection of its network has bought nothing');
  });

  it('is failed after a proof that was refused', () => {
    const proofs = standings();
    const refused = from('a');
    proofs.note(refused, 'refused');
    assert.deepEqual(
      [refused, from('a')].map((req) => proofs.of(req, 'a')),
      ['failed', 'usual'],
    );
  });

  it('is failed on a new connection of a network whose proofs were refused in succession, until a purchase', () => {
    const proofs = standings();
    const refuse = (times: number): void => {
      for (let time = 0; time < times; time += 1) proofs.note(from('a'), 'refused');
    };
    refuse(REFUSED_IN_SUCCESSION - 1);
    assert.equal(proofs.of(from('a'), 'a'), 'usual');
    refuse(1);
    assert.deepEqual([proofs.of(from('a'), 'a'), proofs.of(from('b'), 'b')], ['failed', 'usual']);
    proofs.note(from('a'), 'bought');
    assert.equal(proofs.of(from('a'), 'a'), 'usual');
  });
});
