import type { ProblemList } from '../../problems/problem.ts';
import type { ResourceDocument } from '../document/document.ts';
import type { MandateSetting } from './ap2.ts';

/** The mandates that a resource asks for. Asking for what nobody can bring would sell something that nobody can buy. */
export function requiredMandates(
  document: Pick<ResourceDocument, 'authorization' | 'pricing'>,
  mandates: MandateSetting,
  path: string,
  problems: ProblemList,
): readonly 'ap2'[] {
  const required = document.authorization?.required ?? [];
  if (required.length === 0 || mandates.kind === 'unsound') return required;
  if (mandates.kind === 'off') {
    problems.add(
      `${path}.authorization.required`,
      'needs authorization.ap2.enabled: true, and its checkout and issuers, on the top level of this document',
    );
    return required;
  }
  if (!mandates.trusting)
    problems.add('authorization.ap2.issuers', `is missing: ${path} requires ap2, and no mandate would be trusted`);
  const { pricing } = document;
  if (pricing.type === 'fixed') checkPrice(pricing, mandates.exponents, `${path}.pricing.amount`, problems);
  return required;
}

/** AP2 counts in minor units, which JSON must hold exactly (ap2 7.3). */
function checkPrice(
  { amount, currency }: { readonly amount: string; readonly currency: string },
  exponents: ReadonlyMap<string, number>,
  path: string,
  problems: ProblemList,
): void {
  const exponent = exponents.get(currency);
  const [whole = '', fraction = ''] = amount.split('.');
  // What is wrong with the price itself is said already.
  if (exponent === undefined || !problems.sound(path)) return;
  if (fraction.length > exponent)
    problems.add(path, `must have at most ${exponent} digits behind the point with ap2: those of ${currency}`);
  else if (!Number.isSafeInteger(Number(whole + fraction.padEnd(exponent, '0'))))
    problems.add(path, 'must be less than 2^53 of the smallest units of its currency with ap2');
}
