import type { Json } from '../../../json/types.ts';
import { object, text } from '../model/readers.ts';

/** A payment initiation service; two are the same when all three names are. */
export interface Pisp {
  readonly legalName: string;
  readonly brandName: string;
  readonly domainName: string;
}

/** @throws Refused claims_invalid */
export function readPisp(value: Json): Pisp {
  const { legal_name, brand_name, domain_name } = object(value);
  return { legalName: text(legal_name), brandName: text(brand_name), domainName: text(domain_name) };
}

export function samePisp(one: Pisp, other: Pisp): boolean {
  return one.legalName === other.legalName && one.brandName === other.brandName && one.domainName === other.domainName;
}
