/**
 * The backend of all contestants: reads the whole request, answers 214 bytes of JSON. PORT names
 * its port.
 */
import { serveRaw } from './framing.ts';

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
const ANSWER = { status: 200, json: REPORT };

serveRaw(Number(process.env['PORT']), () => ANSWER);
