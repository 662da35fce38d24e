import { EVERY } from '../every.ts';
import { describeDeaths } from './describe.ts';
import { STEPS_AFTER } from './purchases.ts';

// A run of everything has these deaths among those of `sqlite-local.spec.ts`.
if (!EVERY) describeDeaths({ store: 'sqlite', rail: 'local' }, ['GET settled after', STEPS_AFTER]);
