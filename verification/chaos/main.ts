/**
 * The long run: `node verification/chaos/main.ts --calls 6000 --seed 7`. Progress on stderr, one
 * JSON line on stdout, exit 1 after a violation.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { longPlan, overSqlite, type Plan, shortPlan } from './plan.ts';
import { runChaos } from './run.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    calls: { type: 'string' },
    buyers: { type: 'string' },
    'gateway-kills': { type: 'string' },
    'redis-kills': { type: 'string' },
    'power-cuts': { type: 'string' },
    /** `redis`, by default, or `sqlite`. */
    store: { type: 'string' },
    /** 1, by default, or 2. */
    networks: { type: 'string', default: '1' },
    /** The plan of `make test`. */
    short: { type: 'boolean' },
  },
});
const { store = 'redis' } = values;
if (store !== 'redis' && store !== 'sqlite') throw new Error(`--store ${store}: redis or sqlite is wanted`);
if (values.networks !== '1' && values.networks !== '2')
  throw new Error(`--networks ${values.networks}: 1 or 2 is wanted`);
const seed = Number(values.seed ?? randomInt(2 ** 32));
const redisPlan = values.short === true ? shortPlan(seed) : longPlan(seed);
const base = store === 'sqlite' ? overSqlite(redisPlan) : redisPlan;
const plan: Plan = {
  ...base,
  networks: values.networks === '2' ? 2 : 1,
  calls: Number(values.calls ?? base.calls),
  buyers: Number(values.buyers ?? base.buyers),
  least: {
    ...base.least,
    gatewayKills: Number(values['gateway-kills'] ?? base.least.gatewayKills),
    redisKills: Number(values['redis-kills'] ?? base.least.redisKills),
    powerCuts: Number(values['power-cuts'] ?? base.least.powerCuts),
  },
};
process.stderr.write(`seed ${seed}\n`);
const report = await runChaos(plan, (line) => process.stderr.write(`${line}\n`));
// All that the run started has ended; an open handle must not keep the process alive.
process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(report.violations === undefined ? 0 : 1));
