/** The trusted issuers of specs: fixed keys of the test parties. */

import type { FoundKey, KeyChoice, TrustedIssuers } from '../../../src/mandates/ap2/issuers.ts';
import { BANK, CREDENTIAL_VCT, KID_ONLY, type Parties, PROVIDER, type TestKey } from './keys.ts';

/**
 * Trusts the provider, the bank and the provider without `iss` of these parties: fixed keys,
 * nothing is fetched.
 */
export function trustIn({ provider, bank, kidOnly }: Parties): TrustedIssuers {
  const credentials = { kind: 'credentials', vct: new Set([CREDENTIAL_VCT]) } as const;
  const issuers = new Map<string | undefined, { readonly key: TestKey; readonly issuer: string }>([
    [PROVIDER, { key: provider, issuer: PROVIDER }],
    [BANK, { key: bank, issuer: BANK }],
    [undefined, { key: kidOnly, issuer: KID_ONLY }],
  ]);
  return {
    find({ iss, kid }: KeyChoice): FoundKey {
      const found = issuers.get(iss);
      if (found === undefined) return { kind: 'refused', reason: 'untrusted_issuer' };
      const { key, issuer } = found;
      const { publicJwk, publicKey } = key;
      if (kid !== publicJwk.kid)
        return { kind: 'refused', reason: iss === undefined ? 'untrusted_issuer' : 'unknown_key' };
      const role = issuer === BANK ? credentials : ({ kind: 'mandates' } as const);
      return { kind: 'found', issuer, role, key: { alg: publicJwk.alg, key: publicKey } };
    },
  };
}
