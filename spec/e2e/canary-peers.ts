/** The peers of a gateway that could repeat its secrets: a node or facilitator, and a backend. */

import { answerJson, resetConnection, serveHttp } from '../support/http-server.ts';
import { route, type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

/** A proxy before a node or facilitator: honest, or one that quotes each request in its errors. */
export interface QuotingProxy {
  readonly url: string;
  /** Whether the head of a request held these words. */
  received(words: string): boolean;
  quote(on: boolean): void;
  stop(): Promise<void>;
}

/** Passes everything below `prefix` on to `target`. */
export async function startQuotingProxy(prefix: string, target: string): Promise<QuotingProxy> {
  let quoting = false;
  const heads: string[] = [];
  const server = await serveHttp(async ({ request, response, body }) => {
    const { url = '', method = 'POST', rawHeaders } = request;
    const head = `${url} ${rawHeaders.join(' ')}`;
    heads.push(head);
    if (quoting || !url.startsWith(prefix)) {
      const text = `refused: ${head} ${body.toString()}`;
      response.statusMessage = head.slice(0, 500).replaceAll(/[^\x20-\x7e]/g, '');
      const reasons = { error: text, invalidReason: text, errorReason: text, message: text };
      return answerJson(response, 500, { ...reasons, jsonrpc: '2.0', id: 1 });
    }
    const answer = await fetch(`${target}${url.slice(prefix.length)}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body.length === 0 ? {} : { body }),
    });
    answerJson(response, answer.status, await answer.json());
  });
  return {
    url: `${server.url}${prefix}`,
    received: (words) => heads.some((head) => head.includes(words)),
    quote: (on) => {
      quoting = on;
    },
    stop: server.stop,
  };
}

/** Starts a backend that puts secrets where the gateway might repeat them. */
export function startLeakyBackend(secrets: {
  readonly body: string;
  readonly location: string;
}): Promise<SampleBackend> {
  const headers = { 'content-type': 'application/json', 'x-debug': secrets.body };
  return startSampleBackend({
    routes: [
      route('GET|POST', '/fail/.*', (_, response) => {
        // JSON alone is told to the caller; a page of a framework is not.
        response.writeHead(500, secrets.body, { ...headers, 'content-type': 'text/html' });
        response.end(`<pre>${JSON.stringify({ error: secrets.body })}</pre>`);
      }),
      route('GET', '/redirect', (_, response) => {
        response.writeHead(302, { location: `http://127.0.0.1:1/${secrets.location}` }).end();
      }),
      route('GET|POST', '/reset', (_, response) => resetConnection(response)),
      route('GET|POST', '/.*', (_, response) => void response.writeHead(200, headers).end('{"sold":true}')),
    ],
  });
}
