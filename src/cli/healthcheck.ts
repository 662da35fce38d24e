/** `acg healthcheck`: whether the gateway is up, for containers without a probe of their own. */

import http from 'node:http';
import { loadConfig } from '../config/load.ts';

const DEADLINE_MS = 1_500;

/** Rejects unless the gateway of this configuration answers 200 to /health. */
export function healthcheck(args: { readonly config?: string }): Promise<void> {
  const { management } = loadConfig({ path: args.config, env: process.env });
  return new Promise((resolve, reject) => {
    const request = http.get(
      { host: '127.0.0.1', port: management.port, path: '/health', timeout: DEADLINE_MS },
      (res) => {
        res.resume();
        if (res.statusCode === 200) resolve();
        else reject(new Error(`/health answered ${res.statusCode}`));
      },
    );
    request.on('timeout', () => request.destroy(new Error('/health did not answer')));
    request.on('error', reject);
  });
}
