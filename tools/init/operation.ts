/** A resource of an operation as the command line has it, such as `GET /reports/{city}`. */

import { UsageError } from '../../src/cli/program.ts';
import type { WrittenResource } from '../../src/config/document/document.ts';
import { idOf } from '../../src/config/sections/short-form.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { amountFault } from '../import/prices.ts';

/** A resource in the short form of the configuration. */
export interface SoldOperation {
  readonly backend: Pick<WrittenResource['backend'], 'method' | 'path'>;
  readonly inputSchema?: JsonObject;
  readonly pricing: string;
  readonly expose: readonly string[];
}

const OPERATION = /^(?:(GET|POST|PUT|PATCH|DELETE) )?(\/[^\s?#]*)(?:\?([^\s#]*))?$/i;

/** By id. Parameters of the query are examples of its input. @throws UsageError */
export function soldOperations(texts: readonly string[], price: string): Readonly<Record<string, SoldOperation>> {
  const amount = amountOf(price);
  const pricing = amount === undefined ? 'free' : `$${amount}`;
  const sold: Record<string, SoldOperation> = {};
  for (const text of texts) {
    const { id, operation } = operationOf(text, pricing);
    let free = id;
    for (let next = 2; free in sold; next += 1) free = `${id}-${next}`;
    sold[free] = operation;
  }
  return sold;
}

/** Of `free`, or of `0.01` with or without its `$`; undefined: free. @throws UsageError */
export function amountOf(price: string): string | undefined {
  if (price === 'free') return undefined;
  const amount = price.replace(/^\$/, '');
  const fault = amountFault(amount);
  if (fault !== undefined) throw new UsageError(`--price: ${fault}`);
  return amount;
}

function operationOf(text: string, pricing: string): { readonly id: string; readonly operation: SoldOperation } {
  const [, method = 'GET', path, query = ''] = OPERATION.exec(text.trim()) ?? [];
  if (path === undefined) throw new UsageError(`--sell must be an operation such as 'GET /search', not ${text}`);
  const [, colon] = /\/:(\w+)/.exec(path) ?? [];
  if (colon !== undefined) throw new UsageError(`--sell writes a parameter of the path as {${colon}}, not :${colon}`);
  const names = [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name);
  const properties = Object.fromEntries([
    ...names.map((name) => [name, { type: 'string', minLength: 1, maxLength: 64 }]),
    ...[...new URLSearchParams(query)].map(([name, value]) => [
      name,
      { type: 'string', maxLength: 256, examples: [value] },
    ]),
  ]);
  const inputSchema =
    Object.keys(properties).length === 0
      ? undefined
      : { type: 'object', properties, required: Object.keys(properties) };
  const words = path.split('/').filter((segment) => segment !== '' && !segment.includes('{'));
  return {
    id: idOf(words.at(-1) ?? '') || 'home',
    operation: {
      backend: { method: method.toUpperCase() as SoldOperation['backend']['method'], path },
      ...(inputSchema === undefined ? {} : { inputSchema }),
      // The gateway answers / itself.
      ...{ pricing, expose: ['http', 'mcp', 'a2a', ...(path === '/' ? [] : ['origin'])] },
    },
  };
}
