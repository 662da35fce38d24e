/** The schema of the configuration without the texts that are for editors and documents alone. */

import { readFileSync } from 'node:fs';
import type { Plugin } from 'rolldown';

const SCHEMA = new URL('../../schemas/config.schema.json', import.meta.url);

/** The schema that a gateway works with. */
export function leanConfigSchema(): object {
  return JSON.parse(readFileSync(SCHEMA, 'utf8'), (key, value: unknown) =>
    key === 'markdownDescription' ? undefined : value,
  );
}

/** The bundler plugin that gives modules this schema. */
export function leanSchema(): Plugin {
  return {
    name: 'lean-schema',
    load: {
      filter: { id: /[\\/]schemas[\\/]config\.schema\.json$/ },
      handler: () => ({ code: JSON.stringify(leanConfigSchema()), moduleType: 'json' }),
    },
  };
}
