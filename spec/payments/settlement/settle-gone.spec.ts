import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { joining } from '../../../src/payments/settlement/join.ts';
import { proofDigest } from '../../../src/payments/x402/verify/verify.ts';
import type { Proof } from '../../../src/payments/x402/wire/types.ts';
import { PAID } from './scripted-rail.ts';
import { virtualTime } from './virtual-time.ts';
import { worldOfEachTest } from './world.ts';

const NO_FUNDS = { kind: 'refused', reason: 'insufficient_funds', nonceSpent: false } as const;

describe('a call whose client is gone', () => {
  const world = worldOfEachTest();
  const { settleOnce, record } = world;
  let leaving: AbortController;
  beforeEach(() => {
    leaving = new AbortController();
  });

  it('before it is reserved: asks no peer and writes nothing', async () => {
    leaving.abort();
    assert.deepEqual(await settleOnce({ left: leaving.signal }), { kind: 'gone' });
    assert.deepEqual([await record(), world.peer.names()], [undefined, []]);
  });

  it('while the provider verifies: nothing is written or sent', async () => {
    world.peer.script.verify = async () => {
      leaving.abort();
      return { kind: 'valid' };
    };
    assert.deepEqual(await settleOnce({ left: leaving.signal }), { kind: 'gone' });
    assert.deepEqual([await record(), world.peer.names()], [undefined, ['verify']]);
    assert.equal((await settleOnce()).kind, 'paid', 'and its proof is as good as before');
  });

  it('while it is reserved: the backend is not called, and the reservation is given back', async () => {
    const reserve = world.broken({
      async reserve(command) {
        const reservation = await world.ledger.reserve(command);
        leaving.abort();
        return reservation;
      },
    });
    assert.deepEqual(await world.settleAfter({ left: leaving.signal }, reserve), { kind: 'gone' });
    assert.deepEqual([await record(), world.peer.names(), world.backend.called], [undefined, [], []]);
  });

  it('once the settlement was begun: it goes on, because money may move', async () => {
    world.peer.script.settle = async () => {
      leaving.abort();
      return PAID;
    };
    assert.equal((await settleOnce({ left: leaving.signal })).kind, 'paid');
  });

  it('waits for no other copy any longer', async () => {
    world.terms = { ...world.terms, tokenDigest: 'b'.repeat(64) };
    await world.pay();
    const time = virtualTime();
    const copy = joining(world.settler(), world.ledger, time).settle(world.requestWith({ left: leaving.signal }));
    await time.pass(10);
    leaving.abort();
    assert.deepEqual(await copy, { kind: 'gone' });
  });

  it('that has no client at its start begins nothing', async () => {
    assert.deepEqual(await settleOnce({ left: undefined }), { kind: 'gone' });
    assert.deepEqual([await record(), world.peer.names()], [undefined, []]);
  });
});

describe('a proof that the provider refused', () => {
  const world = worldOfEachTest();
  const { settleOnce, later, record } = world;
  const PROOF = 'AAAAAAAAAAAAAAAAAAAAAA';

  it('is refused again, with the first reason and without a question, until it is too old', async () => {
    world.peer.script.verify = async () => NO_FUNDS;
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'refused');
    world.peer.script.verify = async () => ({ kind: 'valid' });
    world.peer.asked.length = 0;
    const copy = await settleOnce({ proof: PROOF });
    assert.ok(copy.kind === 'refused');
    const { reason, phase, recorded } = copy.owed;
    assert.deepEqual({ reason, phase, recorded }, { reason: 'insufficient_funds', phase: 'verify', recorded: false });
    assert.deepEqual([world.peer.names(), await record()], [[], undefined]);
    later(119_000);
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'refused');
    later(2_000);
    world.peer.script.seesChain = false;
    const late = await settleOnce({ proof: PROOF });
    assert.ok(late.kind === 'refused' && late.owed.reason === 'invalid_exact_evm_payload_authorization_valid_before');
  });

  it('does not count for another proof with the same replay key', async () => {
    world.peer.script.verify = async () => NO_FUNDS;
    await settleOnce({ proof: 'BBBBBBBBBBBBBBBBBBBBBB' });
    world.peer.script.verify = async () => ({ kind: 'valid' });
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'paid');
  });

  it('refused before the provider was asked, or not refused at all: nothing is remembered', async () => {
    world.peer.script.seesChain = false;
    assert.equal((await settleOnce({ proof: PROOF, refusal: 'invalid_network' })).kind, 'refused');
    world.peer.script.verify = async () => ({ kind: 'unavailable', cause: 'away' });
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'unavailable');
    world.peer.script.verify = async () => ({ kind: 'valid' });
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'paid');
  });
});

describe('the digest of a proof', () => {
  const R_S = `${'1'.repeat(64)}${'2'.repeat(64)}`;
  const proof = (signature: string, more: object = {}): Proof => {
    const authorization = {
      from: '0xa',
      to: '0xB',
      value: '7',
      validAfter: '0',
      validBefore: '9',
      nonce: '0x1',
      ...more,
    };
    return { payId: 'p', payload: { payload: { signature, authorization } } } as unknown as Proof;
  };

  it('is short, and one for all spellings of a signature', () => {
    const digest = proofDigest(proof(`0x${R_S}1b`));
    assert.match(digest, /^[A-Za-z0-9_-]{24}$/);
    assert.equal(proofDigest(proof(`0x${R_S.toUpperCase()}00`, { to: '0xb' })), digest);
  });

  it('is another for another signature, or for another thing signed', () => {
    const others = [
      proof(`0x${R_S}1c`),
      proof(`0x${'3'.repeat(600)}`),
      ...['value', 'validAfter', 'validBefore', 'to'].map((name) => proof(`0x${R_S}1b`, { [name]: '8' })),
    ].map(proofDigest);
    assert.equal(new Set([...others, proofDigest(proof(`0x${R_S}1b`))]).size, 7);
  });
});
