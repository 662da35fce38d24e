/**
 * The gateway with a rail that settles nothing: proofs are checked as ever, the store keeps what it
 * keeps, and no facilitator and no chain is asked. For the ratio to a peer whose facilitator does
 * nothing.
 */
import { parseArgs } from 'node:util';
import { serve } from '../../src/cli/serve.ts';
import { createRails } from '../../src/payments/x402/create-rails.ts';
import { openStore } from '../../src/store/open.ts';

const SETTLED = { kind: 'settled', evidence: 'claim', transaction: `0x${'ab'.repeat(32)}` } as const;

const { values } = parseArgs({ allowPositionals: true, options: { config: { type: 'string' } } });
await serve(values.config === undefined ? {} : { config: values.config }, {
  openStore,
  async createRails(entries, log) {
    const rail = await createRails(entries, log);
    return {
      ...rail,
      verify: async () => ({ kind: 'valid' }),
      settle: async () => SETTLED,
      reconcile: async () => SETTLED,
      check: async () => undefined,
    };
  },
});
