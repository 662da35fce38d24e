/**
 * The compiled schema of the configuration. In the bundle this module is another one with the same
 * export, which holds generated code (deploy/bundle/validators.ts): compiling takes a quarter of a
 * start.
 */

import schema from '../../schemas/config.schema.json' with { type: 'json' };
import type { ConfigDocument } from './document/document.ts';
import { createConfigEngine } from './engine.ts';

export const matchesSchema = createConfigEngine().compile<ConfigDocument>(schema);
