/** The facilitator of the benchmark, which only answers the readiness check. */

import { answerJson, type HttpServer, serveHttp } from '../../spec/support/http-server.ts';

const SUPPORTED = { kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:84532' }] };

/** Starts it. Any other request is a mistake of the benchmark and gets 404. */
export function startFacilitatorStub(): Promise<HttpServer> {
  return serveHttp(({ request, response }) => {
    const known = request.method === 'GET' && request.url === '/supported';
    answerJson(response, known ? 200 : 404, known ? SUPPORTED : {});
  });
}
