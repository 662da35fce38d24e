import type { ConfigProblem } from '../../src/problems/problem.ts';
import { type Catalogue, compileCatalogue } from '../../src/resources/catalogue.ts';
import type { Resource } from '../../src/resources/resource.ts';
import { load, problems } from '../config/document/document.ts';

const STARTED_AT = '2026-01-02T03:04:05.000Z';

/** A free resource `it` around an input schema and a backend operation. */
function changes(inputSchema: object | undefined, backend: object, more: object = {}) {
  return {
    'resources.report': undefined,
    'resources.it': {
      name: 'It',
      pricing: { type: 'free' },
      backend: { method: 'POST', path: '/it', ...backend },
      ...more,
      ...(inputSchema && { inputSchema }),
    },
  };
}

export function catalogueOf(inputSchema: object | undefined, backend: object = {}, more: object = {}): Catalogue {
  return compileCatalogue(load(changes(inputSchema, backend, more)), STARTED_AT);
}

export function resourceOf(inputSchema: object | undefined, backend: object = {}, more: object = {}): Resource {
  const resource = catalogueOf(inputSchema, backend, more).byId.get('it');
  if (resource === undefined) throw new Error('not compiled');
  return resource;
}

/** The faults of a schema or a backend operation; paths are relative to the resource. */
export function faultsOf(
  inputSchema: object | undefined,
  backend: object = {},
  more: object = {},
): readonly ConfigProblem[] {
  return problems(changes(inputSchema, backend, more)).map(({ path, message }) => ({
    path: path.replace('resources.it.', ''),
    message,
  }));
}

/** An object schema with these properties. */
export function object(properties: object, more: object = {}): object {
  return { type: 'object', properties, ...more };
}
