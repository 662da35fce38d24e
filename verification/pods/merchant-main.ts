/**
 * The merchant of an emulated pod: `node merchant-main.ts <port> [<milliseconds before it
 * listens>] [<host>]`. It answers GET and POST after the time that the path names, and SIGTERM ends
 * it at once, with everything that it has in hand: the worst, and a common, merchant.
 */

import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** Longest time before an answer, milliseconds. */
const MAX_WAIT_MS = 30_000;

const [, , port = '0', late = '0', host = '127.0.0.1'] = process.argv;
let well = true;
const server = createServer(async (request, response) => {
  for await (const _ of request);
  const { pathname } = new URL(request.url ?? '/', 'http://merchant');
  if (pathname === '/sick') well = false;
  const probed = pathname === '/healthz' || pathname === '/sick';
  await delay(probed ? 0 : Math.min(Number(pathname.split('/').at(-1)), MAX_WAIT_MS) || 0);
  response.statusCode = probed && !well ? 500 : 200;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ made: request.method, path: pathname }));
});
process.on('SIGTERM', () => process.exit(0));
await delay(Number(late));
server.listen(Number(port), host, () => process.stdout.write('listening\n'));
