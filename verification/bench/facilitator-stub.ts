import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const SUPPORTED = JSON.stringify({ kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:84532' }] });

/**
 * Lets the readiness check of the gateway pass. Anything else it is asked is a mistake of the
 * benchmark and gets 404.
 */
export async function startFacilitatorStub(): Promise<{ readonly url: string; stop(): void }> {
  const server = createServer((request, response) => {
    const known = request.method === 'GET' && request.url === '/supported';
    response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' });
    response.end(known ? SUPPORTED : '{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
