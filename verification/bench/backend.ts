/**
 * The backend of all contestants: reads the whole request, answers 214 bytes of JSON. PORT names
 * its port.
 */
import { createServer } from 'node:http';

const REPORT = JSON.stringify({
  city: 'Berlin',
  day: '2026-11-20',
  currency: 'EUR',
  open: '104.25',
  high: '107.90',
  low: '103.75',
  close: '106.40',
  volume: 18234,
  source: 'market-shop',
  note: 'Prices are indicative and delayed by fifteen minutes or more.',
});

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(REPORT) });
    response.end(REPORT);
  });
});
// Longer than any pause between two turns: no contestant is measured while it opens connections.
server.keepAliveTimeout = 120_000;
server.listen(Number(process.env['PORT']), '127.0.0.1');
