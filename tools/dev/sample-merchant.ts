/** The merchant of `acg dev` where a developer brings none: four routes, and how they are sold. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LOCAL_CURRENCY } from '../local-world/token.ts';

/** A service on 127.0.0.1. */
interface SampleMerchant {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts it on any free port. */
export async function startSampleMerchant(): Promise<SampleMerchant> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://merchant');
    const answer = request.method === 'GET' ? answerTo(pathname) : undefined;
    const isBroken = request.method === 'POST' && pathname === '/broken';
    response.writeHead(isBroken ? 500 : answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { error: isBroken ? 'always fails' : 'no such path' }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function answerTo(pathname: string): object | undefined {
  if (pathname === '/cities') return { cities: ['Berlin', 'Lisboa', 'São Paulo'] };
  const [, place, text = ''] = /^\/(reports|weather)\/([^/]+)$/.exec(pathname) ?? [];
  if (place === undefined) return undefined;
  // Text that is no percent-encoding stays as it is.
  const city = text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (encoded) =>
    Buffer.from(encoded.replaceAll('%', ''), 'hex').toString(),
  );
  return place === 'weather' ? { city, sky: 'clear' } : { city, currency: 'EUR', price: '12.50', volume: 340 };
}

/**
 * A configuration that sells its routes: one free, two priced, one of these at its own address, and
 * one that fails, whose purchases are owed back.
 */
export function sampleConfig(backendUrl: string): object {
  const city = { type: 'string', minLength: 1, maxLength: 64, examples: ['Berlin'] };
  const inputSchema = { type: 'object', properties: { city }, required: ['city'] };
  const priced = (amount: string) => ({ type: 'fixed', amount, currency: LOCAL_CURRENCY });
  return {
    version: 1,
    merchant: { id: 'sample', name: 'Sample merchant' },
    backend: { baseUrl: backendUrl },
    protocols: { http: { enabled: true }, mcp: { enabled: true }, a2a: { enabled: true } },
    resources: {
      cities: {
        name: 'Cities',
        description: 'The cities that there are reports of',
        backend: { method: 'GET', path: '/cities' },
        pricing: { type: 'free' },
        expose: ['http', 'mcp', 'a2a'],
      },
      market_report: {
        name: 'Market report',
        description: 'Prices and volumes of one city',
        inputSchema,
        backend: { method: 'GET', path: '/reports/{city}' },
        pricing: priced('0.01'),
        expose: ['http', 'mcp', 'a2a', 'origin'],
      },
      weather: {
        name: 'Weather',
        description: 'The sky above one city',
        inputSchema,
        backend: { method: 'GET', path: '/weather/{city}' },
        pricing: priced('0.001'),
        expose: ['http', 'mcp', 'a2a'],
      },
      broken_report: {
        name: 'Broken report',
        description: 'Always fails after it is paid: a purchase to send back',
        backend: { method: 'POST', path: '/broken' },
        pricing: priced('0.01'),
      },
    },
  };
}
