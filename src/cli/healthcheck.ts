/** `acg healthcheck`: whether the gateway is up, for containers without a probe of their own. */

import http from 'node:http';
import type { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import { CONFIG_OPTION, defineCommand, UnavailableError } from './program.ts';

const DEADLINE_MS = 1_500;

export function healthcheckCommand(): Command {
  const about = 'Ends with 0 when the gateway of this configuration answers /health on this machine, else with 69.';
  return defineCommand('healthcheck', about, 'acg healthcheck --config gateway.yaml')
    .option(...CONFIG_OPTION)
    .action((args) => healthcheck(args));
}

/** Rejects unless the gateway of this configuration answers 200 to /health. */
function healthcheck(args: { readonly config?: string }): Promise<void> {
  const { management } = loadConfig({ path: args.config, env: process.env });
  const where = `http://127.0.0.1:${management.port}/health`;
  return new Promise((resolve, reject) => {
    const failed = (why: string): void => reject(new UnavailableError(`${where} ${why}`));
    const request = http.get(where, { timeout: DEADLINE_MS }, (res) => {
      res.resume();
      if (res.statusCode === 200) resolve();
      else failed(`answered ${res.statusCode}, not 200`);
    });
    request.on('timeout', () => request.destroy(new Error(`within ${DEADLINE_MS} ms`)));
    request.on('error', ({ message }) => failed(`does not answer: ${message}`));
  });
}
