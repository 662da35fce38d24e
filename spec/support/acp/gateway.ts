/** A gateway process that serves checkouts and nothing else. */

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import { checkoutProtocol, SEALED } from '../../adapters/acp/testbed.ts';
import type { ConfigObject, WorldParts } from '../config.ts';
import { NO_CHAIN } from '../config.ts';
import { OPERATOR_TOKEN } from '../gateway.ts';
import { type GatewayProcess, prepareGateway } from '../gateway-process.ts';

/** The process, and what a spec reads of it. */
export interface CheckoutGateway {
  readonly url: string;
  readonly managementUrl: string;
  readonly process: GatewayProcess;
  /** A file with all of its output. */
  readonly logPath: string;
  /** GET with the operator token. */
  operator(path: string): Promise<Response>;
  /** Ends the process and removes its files. */
  stop(): Promise<void>;
}

export interface CheckoutGatewayParts {
  readonly backendUrl: string;
  /** Default: a SQLite file that goes away with the gateway. */
  readonly storage?: WorldParts['storage'] | undefined;
  /** Replace members of `protocols.acp`. */
  readonly acp?: ConfigObject;
  /** Merged into everything. */
  readonly overrides?: ConfigObject;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts it on free ports. */
export async function startCheckoutGateway(parts: CheckoutGatewayParts): Promise<CheckoutGateway> {
  await using ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-checkout-gateway-');
  const { acp, overrides, env = {}, backendUrl, storage } = parts;
  const prepared = await prepareGateway(directory, {
    backendUrl: backendUrl,
    chain: NO_CHAIN,
    facilitator: { mode: 'local' },
    storage,
    adminToken: OPERATOR_TOKEN,
    overrides: {
      ...{ payments: undefined, resources: undefined, storage: SEALED, protocols: { acp: checkoutProtocol(acp) } },
      ...overrides,
    },
  });
  const logPath = join(directory, 'gateway.log');
  const gateway = await prepared.start({ env, onLine: (line) => appendFileSync(logPath, `${line}\n`) });
  ends.defer(async () => void (await gateway.stop()));
  const { baseUrl: url, managementUrl } = prepared;
  const started = ends.move();
  return {
    url,
    managementUrl,
    process: gateway,
    logPath,
    operator: (path) => fetch(`${url}${path}`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } }),
    stop: () => started.disposeAsync(),
  };
}
