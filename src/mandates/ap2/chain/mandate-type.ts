import { hasConfirmation } from '../model/claims.ts';
import { type MandateFamily, Refused } from '../model/reasons.ts';
import type { IssuerRole } from '../trust/trust.ts';
import type { Segment } from './chain.ts';

/** `vct` of the mandates of a family, version included (ap2 2.1). */
const OPEN: Readonly<Record<MandateFamily, string>> = {
  checkout: 'mandate.checkout.open.1',
  payment: 'mandate.payment.open.1',
};
const CLOSED: Readonly<Record<MandateFamily, string>> = {
  checkout: 'mandate.checkout.1',
  payment: 'mandate.payment.1',
};

/**
 * Checks that every segment has the type of its place (ap2 7.6, step 10): open mandates and a closed one at the end, or a credential of a
 * listed type before them; no `cnf` at the end; and an `exp` in every segment but a closing hop.
 * @throws Refused
 */
export function checkTypes(segments: readonly Segment[], role: IssuerRole, family: MandateFamily): void {
  const last = segments.length - 1;
  for (const [at, segment] of segments.entries())
    if (!isOfType(segment, at, last, role, family)) throw new Refused('wrong_mandate_type');
  for (const [at, { claims, mandate }] of segments.entries()) {
    if (at === last && hasConfirmation(claims, mandate)) throw new Refused('chain_broken');
    // The hop that closes a chain is fresh, or it was refused before.
    if ((at < last || last === 0) && claims['exp'] === undefined && mandate?.['exp'] === undefined)
      throw new Refused('claims_invalid');
  }
}

function isOfType(
  { claims, mandate }: Segment,
  at: number,
  last: number,
  role: IssuerRole,
  family: MandateFamily,
): boolean {
  if (at > 0 || role.kind === 'mandates') return mandate?.['vct'] === (at === last ? CLOSED : OPEN)[family];
  const types: ReadonlySet<unknown> = role.vct;
  return last > 0 && mandate === undefined && types.has(claims['vct']);
}
