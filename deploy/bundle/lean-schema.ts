/** The schema of the configuration without the texts that are for editors and documents alone. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'rolldown';

const SCHEMA = new URL('../../schemas/config.schema.json', import.meta.url);
const OF_GATEWAY = /[\\/]src[\\/]/;
const LEAN = '?lean';

/** The schema that a gateway works with. */
export function leanConfigSchema(): object {
  return JSON.parse(readFileSync(SCHEMA, 'utf8'), (key, value: unknown) =>
    key === 'markdownDescription' ? undefined : value,
  );
}

/**
 * The bundler plugin that gives this schema to modules of the gateway. `acg init` has the whole
 * one, which editors read.
 */
export function leanSchema(): Plugin {
  return {
    name: 'lean-schema',
    resolveId: {
      filter: { id: /[\\/]schemas[\\/]config\.schema\.json$/ },
      handler: (_source, importer) =>
        importer !== undefined && OF_GATEWAY.test(importer) ? `${fileURLToPath(SCHEMA)}${LEAN}` : null,
    },
    load: {
      filter: { id: /[\\/]schemas[\\/]config\.schema\.json\?lean$/ },
      handler: () => ({ code: JSON.stringify(leanConfigSchema()), moduleType: 'json' }),
    },
  };
}
