import fc from 'fast-check';
import type { MandateClaim, OpenMandateUse } from '../../src/mandates/register/register.ts';
import { AT, useOf } from '../mandates/register/register-map.ts';

/** Times that need no waiting, seconds: over at the next step, and longer than any test. */
const SHORT_S = 0.001;
const LONG_S = 3_600;
const MAX_UNITS = String(Number.MAX_SAFE_INTEGER);

/** A claim before its family is known: the ids are few, so that claims share some. */
export interface DrawnClaim {
  readonly mandate: number;
  readonly checkout: number;
  readonly brief: boolean;
  /** Seconds after the first moment; months are 100 s long. */
  readonly later: number;
  readonly age: number | undefined;
  readonly open: readonly DrawnUse[];
}
interface DrawnUse {
  readonly id: number;
  readonly age: number | undefined;
  readonly units: string | undefined;
  readonly budgetUnits: string;
  readonly maxOccurrences: number | undefined;
  readonly monthly: boolean;
  readonly brief: boolean;
}

const MONTH_S = 100;
/** Seconds since the register began; claims are made before that, after it and now. */
export const BORN_AGO_S = 1_800;
const ages = fc.constantFrom(0, 0, 0, 0.25, 60, 60, BORN_AGO_S / 2, BORN_AGO_S * 2, undefined);
const use: fc.Arbitrary<DrawnUse> = fc.record({
  id: fc.constantFrom(0, 0, 0, 1),
  age: ages,
  units: fc.constantFrom('0', '1', '1', '1', '30', '30', '60', '9007199254740990', MAX_UNITS, undefined),
  budgetUnits: fc.constantFrom('60', '100', '100', MAX_UNITS, MAX_UNITS),
  maxOccurrences: fc.constantFrom(undefined, undefined, undefined, 1, 2, 5),
  monthly: fc.boolean(),
  brief: fc.nat(9).map((drawn) => drawn === 0),
});

/** Claims of one family: three closed mandates and checkouts, two open mandates. */
export const drawnClaims: fc.Arbitrary<DrawnClaim> = fc.record({
  mandate: fc.nat(5),
  checkout: fc.nat(5),
  brief: fc.nat(9).map((drawn) => drawn === 0),
  later: fc.constantFrom(0, 0.25, 1, 150, 250),
  age: ages,
  open: fc.uniqueArray(use, { maxLength: 2, selector: ({ id }) => id }),
});

/** The claim of one family of ids. */
export function drawnClaim(family: string, { mandate, checkout, brief, later, age, open }: DrawnClaim): MandateClaim {
  const at = AT + later;
  return {
    at,
    age,
    once: [`m:${family}-${mandate}`, `j:${family}-${checkout}`],
    onceUntil: at + (brief ? SHORT_S : LONG_S),
    open: open.map((one) => drawnUse(family, one, at)),
  };
}

function drawnUse(
  family: string,
  { id, age, units, budgetUnits, maxOccurrences, ...one }: DrawnUse,
  at: number,
): OpenMandateUse {
  const until = at + (one.brief ? SHORT_S : LONG_S);
  const name = `o:${family}-${id}`;
  if (units === undefined) return { ...useOf(name, undefined, until), age };
  const periodStart = one.monthly ? AT + Math.floor((at - AT) / MONTH_S) * MONTH_S : undefined;
  return { ...useOf(name, { units, budgetUnits, maxOccurrences, periodStart }, until), age };
}
