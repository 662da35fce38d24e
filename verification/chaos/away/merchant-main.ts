/**
 * A backend in a process of its own, which can be killed and stopped: `node merchant-main.ts <port>
 * <manner> <work>`, where `work` is how long an answer takes, milliseconds.
 */
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** Delay after the accept of a connection, milliseconds. */
const CLOSE_MS = 0;

const [, , port = '0', manner = 'answers', work = '0'] = process.argv;
const workMs = Number(work);
const server = createServer(async (request, response) => {
  for await (const _ of request);
  if (manner === 'cuts') {
    request.socket.destroy();
    return;
  }
  if (workMs > 0) await delay(workMs);
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ path: request.url }));
});
if (manner === 'closes') server.on('connection', (socket) => setTimeout(() => socket.destroy(), CLOSE_MS));
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('listening\n'));
