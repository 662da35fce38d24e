/** Keeps the log of receipts, where the configuration has a key that signs it. */

import type { GatewayConfig } from '../config/document/config.ts';
import { signingKey } from '../crypto/signing-key.ts';
import { createSealer, type SealerOptions, startSealing } from '../receipts/log/sealer.ts';
import type { Store } from '../store/port/store.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

/** A receipt has two to four versions, so that of each in the book the last ones are there. */
const VERSIONS_PER_RECEIPT = 4;

type LogSettings = Pick<GatewayConfig, 'storage' | 'merchant' | 'signing'>;

/** Undefined: there is no log. */
function sealerOptions({ storage, merchant, signing }: LogSettings): SealerOptions | undefined {
  if (signing === undefined) return undefined;
  const maxVersions = VERSIONS_PER_RECEIPT * storage.receiptsMaxLength;
  return { merchant: merchant.id, key: signingKey(signing.key), maxVersions };
}

/** Seals in the background. `stop` seals what is left. */
export function startReceiptLog(
  { receiptLog }: Pick<Store, 'receiptLog'>,
  config: LogSettings,
  log: Pick<Log, 'warn' | 'error'>,
  metrics: Pick<Metrics, 'counter'>,
): { stop(): Promise<void> } | undefined {
  const options = sealerOptions(config);
  if (receiptLog === undefined || options === undefined) return undefined;
  const counts = { checkpoint: 0, lost: 0, foreign: 0 };
  metrics.counter({
    name: 'acg_receipt_log_total',
    help:
      'What this process met in the log of receipts. checkpoint: it wrote one; lost: one that it saw is gone; foreign: a line that ' +
      'no holder of signing.key wrote. Of the last two there are none unless the store was changed or lost.',
    label: 'what',
    read: () => counts,
  });
  const watched: SealerOptions = {
    ...options,
    onSealed: () => {
      counts.checkpoint += 1;
    },
    onTampering: (found) => {
      counts[found.what] += found.what === 'foreign' ? found.lines : 1;
      log.error(found, 'the log of receipts was changed by another hand: run acg receipts --verify');
    },
  };
  return startSealing(receiptLog, watched, (err) => log.warn({ err }, 'the log of receipts waits for the store'));
}

/** Seals what a command wrote. A gateway does it later where this fails. */
export async function sealReceiptLog({ receiptLog }: Pick<Store, 'receiptLog'>, config: LogSettings): Promise<void> {
  const options = sealerOptions(config);
  if (receiptLog === undefined || options === undefined || receiptLog.series.made() === 0) return;
  await createSealer(receiptLog, options)
    .seal()
    .catch(() => undefined);
}
