import type { GatewayConfig } from '../../src/config/document/config.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import type { Resource } from '../../src/resources/resource.ts';
import { type Changes, load } from '../config/document/document.ts';

/** A gateway that sells reports, and nothing in place unless changed. */
export const R = 'resources.report';
/** Sells the reports at their own address. */
export const IN_PLACE: Changes = { [`${R}.expose`]: ['http', 'origin'] };

/** Passes everything but what these settings say. */
export function passing(settings: object = { exclude: [] }): Changes {
  return { 'backend.passthrough': { enabled: true, ...settings } };
}

/** A further resource, with one input for each parameter of its path. */
export function resource(
  id: string,
  method: string,
  path: string,
  { price, ...more }: { readonly price?: string; readonly [member: string]: unknown } = {},
): Changes {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const pricing = price === undefined ? { type: 'free' } : { type: 'fixed', amount: price, currency: 'USDC' };
  const inputSchema = { type: 'object', properties, required: names };
  return { [`resources.${id}`]: { name: id, inputSchema, backend: { method, path }, pricing, ...more } };
}

/** A configuration and its compiled resources. */
export function compiled(changes: Changes): readonly [GatewayConfig, { byId: ReadonlyMap<string, Resource> }] {
  const config = load(changes);
  return [config, compileCatalogue(config)];
}
