import { describeDeaths } from './describe.ts';

describeDeaths({ store: 'redis', rail: 'local' });
