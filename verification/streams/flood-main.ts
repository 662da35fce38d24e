/**
 * A flood in a process of its own: `connections` clients that ask again as soon as they have an
 * answer. Arguments: URL, connections, seconds, the body of a POST. Prints how they were answered.
 */

import http from 'node:http';

const [url = '', connections = '1', seconds = '1', body] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: Number(connections) });
const until = Date.now() + Number(seconds) * 1_000;
const statuses: Record<string, number> = {};
const times: number[] = [];

async function ask(): Promise<void> {
  const startedAt = performance.now();
  const status = await new Promise<string>((resolve) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const request = http.request(url, { agent, method: body === undefined ? 'GET' : 'POST', headers }, (response) => {
      response.resume().once('end', () => resolve(String(response.statusCode)));
    });
    request.once('error', () => resolve('broken'));
    request.end(body);
  });
  statuses[status] = (statuses[status] ?? 0) + 1;
  times.push(performance.now() - startedAt);
}

await Promise.all(
  Array.from({ length: Number(connections) }, async () => {
    while (Date.now() < until) await ask();
  }),
);
agent.destroy();
times.sort((a, b) => a - b);
process.stdout.write(
  JSON.stringify({ statuses, p50: times[times.length >> 1], p99: times[Math.floor(times.length * 0.99)] }),
);
