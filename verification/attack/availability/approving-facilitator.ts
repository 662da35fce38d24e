/**
 * A facilitator that finds everything valid and settles it at once, in a process of its own. Moves
 * nothing. PORT names its port, NETWORK its chain.
 */
import { createServer, type ServerResponse } from 'node:http';

const network = process.env['NETWORK'] ?? '';
const SUPPORTED = JSON.stringify({ kinds: [{ x402Version: 2, scheme: 'exact', network }] });
const VALID = JSON.stringify({ isValid: true });
/** Hexadecimal digits of a hash. */
const HASH_DIGITS = 64;

let settled = 0;

/** Every settlement has a transaction of its own. */
function settlement(): string {
  settled += 1;
  const transaction = `0x${settled.toString(16).padStart(HASH_DIGITS, '0')}`;
  return JSON.stringify({ success: true, transaction, network });
}

function give(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    if (request.url === '/verify') give(response, VALID);
    else if (request.url === '/settle') give(response, settlement());
    else give(response, SUPPORTED);
  });
});
server.keepAliveTimeout = 120_000;
server.listen(Number(process.env['PORT']), '127.0.0.1');
