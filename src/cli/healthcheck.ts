/** `acg healthcheck`: whether the gateway is up, for containers without a probe of their own. */

import type { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import { localUrl } from './gateway-client.ts';
import { httpGet } from './http-get.ts';
import { CONFIG_OPTION, defineCommand, UnavailableError } from './program.ts';

const DEADLINE_MS = 1_500;

export function healthcheckCommand(): Command {
  const about = 'Ends with 0 when the gateway of this configuration answers /health on this machine, else with 69.';
  return defineCommand('healthcheck', about, 'acg healthcheck --config gateway.yaml')
    .option(...CONFIG_OPTION)
    .action((args) => healthcheck(args));
}

/** Rejects unless the gateway of this configuration answers 200 to /health. */
async function healthcheck(args: { readonly config?: string }): Promise<void> {
  const { management } = loadConfig({ path: args.config, env: process.env });
  const where = `${localUrl(management)}/health`;
  const { statusCode, body } = await httpGet(where, { signal: AbortSignal.timeout(DEADLINE_MS) });
  body.destroy();
  if (statusCode !== 200) throw new UnavailableError(`${where} answered ${statusCode}, not 200`);
}
