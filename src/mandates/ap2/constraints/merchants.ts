import type { Json } from '../../../json/types.ts';
import { list, object, optional, text } from '../model/readers.ts';

/** A merchant as AP2 names one; only the id tells two apart. An empty one is nobody's, least of all that of a merchant with the same name. */
interface MerchantName {
  readonly id: string;
}

/** @throws Refused claims_invalid */
export function readMerchant(value: Json | undefined): MerchantName {
  const { id, name, website } = object(value);
  text(name);
  optional(website, text);
  return { id: text(id) };
}

/** Those that were shown of a list. @throws Refused claims_invalid */
export function readMerchants(allowed: Json | undefined): readonly MerchantName[] {
  return list(allowed).map(readMerchant);
}
