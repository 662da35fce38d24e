import { randomUUID } from 'node:crypto';
import { ERRORS } from '../../../src/errors.ts';
import type { JsonObject } from '../../../src/json/types.ts';
import { createIssuedCheckouts } from '../../../src/mandates/ap2/checkout/checkout-mint.ts';
import { REASONS, type Reason } from '../../../src/mandates/ap2/model/reasons.ts';
import { createTrustedIssuers } from '../../../src/mandates/ap2/trust/issuers.ts';
import { createMandateVerifier, type MandateVerifier } from '../../../src/mandates/ap2/verify/verify.ts';
import type { MandateRegister } from '../../../src/mandates/register/register.ts';
import type { Shop } from './config.ts';
import type { Outcome, Policy, VectorCase } from './file.ts';

/** What came of a presentation, in the words of a file of vectors. */
export interface Result {
  /** `accepted`, or a reason. */
  readonly result: string;
  readonly facts: JsonObject;
}

/** Presents a case to the verifier and, where that accepts it, to the register. */
export type Presenter = (vector: VectorCase, register: MandateRegister, outcome: Outcome) => Promise<Result>;

/** The verifier is the one that serves; only its clock is that of the file. */
export function createPresenter(shop: Shop): Presenter {
  const verifiers = new Map<string, MandateVerifier>();
  const verifierOf = (policy: Policy): MandateVerifier => {
    const key = JSON.stringify(policy);
    const verifier = verifiers.get(key) ?? verifierFor(shop, policy);
    verifiers.set(key, verifier);
    return verifier;
  };
  return async function present({ header, purchase, policy, now }, register, outcome) {
    const carried = header === undefined ? ({ kind: 'none' } as const) : ({ kind: 'text', value: header } as const);
    const verdict = await verifierOf(policy).verify(carried, purchase, now);
    if (verdict.kind === 'refused') return refused(verdict.reason);
    const name = randomUUID();
    const used = await register.reserve(name, verdict.claim);
    if (used.kind === 'refused') return refused(used.reason);
    if (outcome !== 'uncertain') await register.finish(name, outcome === 'committed' ? 'commit' : 'release');
    const { mode, reference, mandateId } = verdict;
    return { result: 'accepted', facts: { mode, reference, mandateId } };
  };
}

function verifierFor({ profile, issuers, checkoutKeys }: Shop, policy: Policy): MandateVerifier {
  const fetcher = { fetch: () => Promise.reject(new Error('all keys are in the file')) };
  return createMandateVerifier({
    profile: { ...profile, policy },
    trust: createTrustedIssuers(issuers, { fetcher }),
    checkoutKeys,
    minted: createIssuedCheckouts(),
  });
}

function refused(reason: Reason): Result {
  const { code, ap2Error } = REASONS[reason];
  return { result: reason, facts: { code, status: ERRORS[code].status, ap2Error: ap2Error ?? null } };
}
