/** Preloaded into the process of a trial: applies `MUTANT` to its file as it is read. */

import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { applied, type Mutant } from './sites.ts';

// Nothing on the disk changes.
const text = process.env['MUTANT'];
if (text !== undefined) {
  const mutant = JSON.parse(text) as Mutant & { readonly path: string };
  registerHooks({
    load(url, context, next) {
      if (!url.startsWith('file:') || fileURLToPath(url) !== mutant.path) return next(url, context);
      const source = applied(readFileSync(mutant.path, 'utf8'), mutant);
      return { format: 'module-typescript', source, shortCircuit: true };
    },
  });
}
