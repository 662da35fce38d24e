import http from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * What stands between the gateway and those it asks: honest, or somebody who quotes all he was sent
 * in his errors.
 */
export interface QuotingLine {
  readonly url: string;
  /** Requests that came with these words in their head or target. */
  heard(words: string): boolean;
  quote(on: boolean): void;
  stop(): Promise<void>;
}

/** Passes everything below `prefix` on to `target`. */
export async function startQuotingLine(prefix: string, target: string): Promise<QuotingLine> {
  let quoting = false;
  const heads: string[] = [];
  const server = http.createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const head = `${req.url} ${req.rawHeaders.join(' ')}`;
    heads.push(head);
    if (quoting || !req.url?.startsWith(prefix)) {
      const said = `refused: ${head} ${body.toString()}`;
      res.writeHead(500, head.slice(0, 500).replaceAll(/[^\x20-\x7e]/g, ''), { 'content-type': 'application/json' });
      res.end(
        JSON.stringify({ error: said, invalidReason: said, errorReason: said, message: said, jsonrpc: '2.0', id: 1 }),
      );
      return;
    }
    const asked = await fetch(`${target}${req.url.slice(prefix.length)}`, {
      method: req.method ?? 'POST',
      headers: { 'content-type': 'application/json' },
      ...(body.length === 0 ? {} : { body }),
    });
    res.writeHead(asked.status, { 'content-type': 'application/json' }).end(Buffer.from(await asked.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    heard: (words) => heads.some((head) => head.includes(words)),
    quote: (on) => {
      quoting = on;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/**
 * A merchant who puts secrets of his own where the gateway might repeat them, and keeps what he was
 * sent.
 */
export async function startLeakyMerchant(secrets: { readonly body: string; readonly location: string }) {
  const sent: string[] = [];
  const server = http.createServer((req, res) => {
    sent.push(`${req.url} ${req.rawHeaders.join(' ')}`);
    req.resume();
    if (req.url?.startsWith('/fail')) {
      res.writeHead(500, secrets.body, { 'content-type': 'application/json', 'x-debug': secrets.body });
      res.end(JSON.stringify({ error: secrets.body }));
    } else if (req.url?.startsWith('/redirect'))
      res.writeHead(302, { location: `http://127.0.0.1:1/${secrets.location}` }).end();
    else if (req.url?.startsWith('/reset')) req.socket.resetAndDestroy();
    else res.writeHead(200, { 'content-type': 'application/json', 'x-debug': secrets.body }).end('{"sold":true}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent: () => sent.join('\n'),
    async stop() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
