import { describeDeaths } from './describe.ts';

describeDeaths({ store: 'sqlite', rail: 'local' });
