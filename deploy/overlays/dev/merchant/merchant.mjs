/**
 * Example backend: knows nothing of agents or payments. On loopback only the gateway reaches it.
 */
import { createServer } from 'node:http';

const PORT = 3000;

function answer(path) {
  if (path === '/healthz') return { ok: true };
  if (path === '/status') return { open: true };
  const city = /^\/reports\/([^/]+)$/.exec(path)?.[1];
  return city === undefined ? undefined : { city: decodeURIComponent(city), average: 12.5, volume: 340 };
}

const server = createServer((request, response) => {
  const body = answer(new URL(request.url ?? '/', 'http://merchant').pathname);
  response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body ?? { error: 'not found' }));
});
server.listen(PORT, '127.0.0.1');
process.once('SIGTERM', () => {
  server.close();
  server.closeIdleConnections();
});
