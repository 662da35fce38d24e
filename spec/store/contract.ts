import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkoutContract } from './contract-checkouts.ts';
import { feedContract, tailContract } from './contract-feed.ts';
import { censusContract, ledgerContract, workContract } from './contract-ledger.ts';
import { freeMandateContract, mandateContract } from './contract-mandates.ts';
import { receiptContract } from './contract-receipts.ts';
import { type OpenStore, opened } from './opened.ts';

/** The contract of a store: the same suite runs against every engine. */
export function storeContract(name: string, open: OpenStore): void {
  ledgerContract(name, open);
  workContract(name, open);
  censusContract(name, open);
  feedContract(name, open);
  tailContract(name, open);
  receiptContract(name, open);
  mandateContract(name, open);
  freeMandateContract(name, open);
  checkoutContract(name, open);

  describe(`${name}: health`, () => {
    const { store } = opened(open);
    it('is ok while it writes', async () => {
      assert.deepEqual(await store().check(), { status: 'ok' });
    });
  });
}
