/**
 * A backend in a process of its own, which can be killed and stopped: `node merchant-main.ts <port>
 * <manner>`.
 */
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** How long an answer takes, milliseconds. */
const WORK_MS = 0;
/** Delay after the accept of a connection, milliseconds. */
const CLOSE_MS = 0;

const [, , port = '0', manner = 'answers'] = process.argv;
const server = createServer(async (request, response) => {
  for await (const _ of request);
  if (manner === 'cuts') {
    request.socket.destroy();
    return;
  }
  if (WORK_MS > 0) await delay(WORK_MS);
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ path: request.url }));
});
if (manner === 'closes') server.on('connection', (socket) => setTimeout(() => socket.destroy(), CLOSE_MS));
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('listening\n'));
