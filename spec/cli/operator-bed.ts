/** A running gateway with a store that a spec fills, and its configuration file. */

import { join } from 'node:path';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { type ConfigObject, NO_CHAIN, worldConfig, writeConfig } from '../support/config.ts';
import { OPERATOR_TOKEN, openGateway, type TestGateway } from '../support/gateway.ts';

export interface OperatorBed {
  readonly gateway: TestGateway;
  /** Has the configuration as `config.yaml`. */
  readonly folder: string;
}

const FACILITATOR = { mode: 'remote', url: 'http://127.0.0.1:1' } as const;

export async function openOperatorBed(ends: AsyncDisposableStack, overrides: ConfigObject = {}): Promise<OperatorBed> {
  const folder = await temporaryDirectory(ends, 'acg-operator-');
  const parts = { chain: NO_CHAIN, backendUrl: 'http://127.0.0.1:9', facilitator: FACILITATOR, overrides };
  const gateway = ends.adopt(await openGateway(parts), ({ close }) => close());
  const agents = Number(new URL(gateway.url).port);
  const storage = { sqlite: { path: ':memory:' } };
  const config = worldConfig({ ...parts, adminToken: OPERATOR_TOKEN, storage, ports: { agents, management: 1 } });
  await writeConfig(join(folder, 'config.yaml'), config);
  return { gateway, folder };
}
