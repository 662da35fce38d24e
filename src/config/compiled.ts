/**
 * The compiled schema of the configuration. In the bundle this module is another one with the same
 * export, which holds generated code (deploy/bundle/validators.ts): compiling takes a quarter of a
 * start.
 */

import schema from '../../schemas/config.schema.json' with { type: 'json' };
import type { ConfigDocument } from './document/document.ts';
import { createConfigEngine } from './engine.ts';

// Making the generated code smaller takes a third of the time, and it runs once or twice.
export const matchesSchema = createConfigEngine({ optimize: false }).compile<ConfigDocument>(schema);
