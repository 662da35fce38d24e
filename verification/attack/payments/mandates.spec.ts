import { describe } from 'node:test';
import { proven } from '../catalogue.ts';

describe('attacks with mandates', () => {
  proven('A1', 'verification/mandates/flips.spec.ts', 'is never accepted as a new mandate');
  proven(
    'A1',
    'spec/e2e/mandates-refused.spec.ts',
    'the same mandate buys once; the second payment is not touched and buys with another',
  );
  proven(
    'A1',
    'spec/e2e/mandates-store-loss.spec.ts',
    'is refused under a fresh checkout as well when it is open, the log states why, and the operator may accept it',
  );
  proven('A2', 'spec/e2e/mandates-refused.spec.ts', 'one open mandate, closed twice, buys once');
  proven('A2', 'spec/e2e/mandates-race.spec.ts', 'copies of one call share one mandate and one settlement');
  proven('A2', 'spec/e2e/mandates-policy.spec.ts', 'refuses any other payment of the same payer, and takes the one');
});
