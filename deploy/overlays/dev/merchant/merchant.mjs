/**
 * Example backend: knows nothing of agents or payments. On loopback only the gateway reaches it.
 */
import { createServer, get } from 'node:http';

const PORT = 3000;

function answer(path) {
  if (path === '/healthz') return { ok: true };
  if (path === '/status') return { open: true };
  const city = /^\/reports\/([^/]+)$/.exec(path)?.[1];
  return city === undefined ? undefined : { city: decodeURIComponent(city), average: 12.5, volume: 340 };
}

function serve() {
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
}

/** `merchant.mjs ready`: exit code 0 when the backend answers. */
function ready() {
  const request = get({ host: '127.0.0.1', port: PORT, path: '/healthz', agent: false }, (response) => {
    response.resume();
    process.exitCode = response.statusCode === 200 ? 0 : 1;
  });
  request.on('error', () => {
    process.exitCode = 1;
  });
}

if (process.argv[2] === 'ready') ready();
else serve();
