/** Asks a hook of the pod as the kubelet does: `fetch` would send the metadata of a page. */

import { request } from 'node:http';
import { text } from 'node:stream/consumers';

/** An answer of the management listener. */
export interface HookAnswer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** GET of `/drain` or `/release`. `headers`: instead of the header of hooks. */
export function askHook(
  managementUrl: string,
  path: '/drain' | '/release',
  headers: Readonly<Record<string, string>> = { 'agent-commerce-hook': '1' },
): Promise<HookAnswer> {
  return new Promise((resolve, reject) => {
    const asked = request(`${managementUrl}${path}`, { headers, agent: false }, (answer) => {
      text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body, headers: answer.headers }), reject);
    });
    asked.once('error', reject).end();
  });
}
