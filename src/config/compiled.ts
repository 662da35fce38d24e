import schema from '../../schemas/config.schema.json' with { type: 'json' };
import type { ConfigDocument } from './document/document.ts';
import { createConfigEngine } from './engine.ts';

/**
 * The published schema's verdict on a document. In the bundle this module is another one with the
 * same export, which holds its code (deploy/bundle/validators.ts): compiling it took a quarter of a
 * start.
 */
export const matchesSchema = createConfigEngine().compile<ConfigDocument>(schema);
