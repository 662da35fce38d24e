import { EVERY } from '../every.ts';
import { describeDeaths } from './describe.ts';
import { STEPS_AFTER } from './purchases.ts';

// A run of everything has these deaths among those of `redis-official.spec.ts`.
if (!EVERY) describeDeaths({ store: 'redis', rail: 'official' }, ['POST settled after', STEPS_AFTER]);
