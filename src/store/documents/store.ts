/** What a store is made of. */

import type { CheckoutClaims } from '../../checkouts/claim-table.ts';
import type { EventFeed } from '../../events/event.ts';
import type { MandateRegister } from '../../mandates/register.ts';
import type { PaymentCensus } from '../../payments/ledger/document-ledger.ts';
import type { PaymentLedger } from '../../payments/ledger/ledger.ts';
import type { SharedSecrets } from '../../payments/pricing/buyer-token.ts';
import type { SharedWork } from '../../payments/settlement/places.ts';
import type { ReceiptBook } from '../../receipts/receipt.ts';
import type { StorageConfig } from '../port/settings.ts';
import type { StoreHealth } from '../port/store-error.ts';

/** Everything that must survive the process: in Redis for several processes, in SQLite for one. */
export interface Store {
  readonly name: 'redis' | 'sqlite';
  readonly ledger: PaymentLedger;
  readonly feed: EventFeed;
  readonly receipts: ReceiptBook;
  /** Uses of mandates by calls that pay nothing; those of payments are written with the ledger. */
  readonly mandates: MandateRegister;
  /** Claims of keyed operations on checkout sessions. */
  readonly checkouts: CheckoutClaims;
  /** Values that all processes of the merchant share. */
  readonly secrets: SharedSecrets;
  /** The budget of unpaid work of all processes; absent where one process has the store. */
  readonly work?: SharedWork;
  /** Counts the payments that stand open. @throws StoreError */
  census(): Promise<PaymentCensus>;
  /** Writes and reads back: a PING does not notice a read-only replica or a full disk. */
  check(): Promise<StoreHealth>;
  /** How often a sealed value could not be opened, by its kind; absent where nothing is sealed. */
  readonly unreadable?: () => Readonly<Record<string, number>>;
  /** Takes over keys and logins of another configuration; absent where there are none. */
  renew?(config: Pick<StorageConfig, 'engine' | 'sealing'>): void;
  /** A short step of housekeeping: drops receipts over the bounds. True: there is more to do. */
  tidy(): Promise<boolean>;
  close(): Promise<void>;
}
