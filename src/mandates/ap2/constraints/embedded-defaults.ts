import { canonicalJson } from '../../../json/canonical.ts';
import type { Json, JsonObject } from '../../../json/types.ts';
import { Refused } from '../model/reasons.ts';

/** Members of a closed payment mandate that an open one may fix (ap2 2.1). */
const PRESETS = [
  'transaction_id',
  'payee',
  'payment_amount',
  'payment_instrument',
  'pisp',
  'execution_date',
  'risk_data',
] as const;

/** What the open mandate fixed is in the closed one just so. @throws Refused preset_mismatch */
export function checkEmbeddedDefaults(open: JsonObject, closed: JsonObject): void {
  for (const name of PRESETS) {
    const preset = open[name];
    if (preset !== undefined && !same(preset, closed[name])) throw new Refused('preset_mismatch');
  }
}

function same(preset: Json, value: Json | undefined): boolean {
  return value !== undefined && canonicalJson(preset) === canonicalJson(value);
}
