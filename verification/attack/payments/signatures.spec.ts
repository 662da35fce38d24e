import assert from 'node:assert/strict';
import { describe } from 'node:test';
import {
  CHECKED_HERE,
  freshAccount,
  offerFor,
  payloadFor,
  RESOURCE_URL,
  termsFor,
} from '../../../spec/payments/x402/signing.ts';
import { prepareRecovery } from '../../../src/payments/x402/evm/signature.ts';
import { createExaminer, type ExaminerDeps } from '../../../src/payments/x402/verify/verify.ts';
import { decodeProof, encodeProof } from '../../../src/payments/x402/wire/header-codec.ts';
import type { PaymentPayload } from '../../../src/payments/x402/wire/types.ts';
import { attack } from '../catalogue.ts';

/** Order of the group of secp256k1. */
const GROUP_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const BAD_SIGNATURE = 'invalid_exact_evm_payload_signature';
/** Precompiled contracts, the empty address, and the ends of their range. */
const RESERVED = [0, 1, 2, 3, 4, 5, 9, 10, 0x100, 0xffff];

const terms = termsFor();
const offer = offerFor(terms);
const payer = freshAccount();
const { recover } = await prepareRecovery();

/** The verdict on a proof; the chain answers only through `deps`. */
async function verdict(payload: PaymentPayload, deps: Partial<ExaminerDeps> = {}): Promise<string> {
  const decoded = decodeProof(encodeProof(payload));
  assert.ok(decoded.kind === 'decoded');
  const examine = createExaminer({ terms, recover, ...CHECKED_HERE, ...deps });
  const examined = examine({ decoded, offer, resourceUrl: RESOURCE_URL, nowMs: Date.now() });
  assert.equal(examined.refusal, undefined);
  const checked = await examined.checkSignature();
  const proven = checked.kind === 'unproven' ? await checked.prove() : checked;
  return proven.kind === 'refused' ? proven.reason : proven.kind;
}

describe('a signature derived from another one', () => {
  attack(
    ['X2', 'X16', 'I1'],
    'the second signature of the same authorization, with s in the upper half, is invalid',
    async () => {
      for (let round = 0; round < 20; round += 1) {
        const payload = await payloadFor(payer, terms);
        assert.equal(await verdict(payload), 'genuine');
        const { signature } = payload.payload;
        const s = (GROUP_ORDER - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0');
        for (const v of ['1b', '1c', '00', '01']) {
          const other = `${signature.slice(0, 66)}${s}${v}`;
          const dressed = { ...payload, payload: { ...payload.payload, signature: other } };
          assert.equal(await verdict(dressed), BAD_SIGNATURE);
        }
      }
    },
  );

  attack(
    ['X8', 'X19'],
    'a payer in the range of precompiled contracts is refused before a node is asked, which would approve it',
    async () => {
      let asked = 0;
      // The identity precompile answers `isValidSignature` with its selector, which means valid.
      const wallets: ExaminerDeps['wallets'] = {
        check: async (_wallet, _digest, signature) => {
          asked += 1;
          return { kind: 'signed', signature };
        },
      };
      const payload = await payloadFor(payer, terms);
      for (const address of RESERVED) {
        const from = `0x${address.toString(16).padStart(40, '0')}`;
        const authorization = { ...payload.payload.authorization, from };
        const signatures = [payload.payload.signature, `0x${'11'.repeat(64)}1b`, `0x${'ab'.repeat(200)}`];
        for (const signature of signatures) {
          const changed = { ...payload, payload: { authorization, signature } };
          assert.equal(await verdict(changed, { wallets }), BAD_SIGNATURE, from);
        }
      }
      assert.equal(asked, 0);
      const contract = `0x${(0x1_0000).toString(16).padStart(40, '0')}`;
      const authorization = { ...payload.payload.authorization, from: contract };
      const next = { ...payload, payload: { ...payload.payload, authorization } };
      assert.equal(await verdict(next, { wallets }), 'genuine', 'the first address after the range may be a wallet');
    },
  );
});
