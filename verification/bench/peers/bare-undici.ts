/** The least that Node needs to pass a call on, as a contestant. */

import { createServer } from 'node:http';
import { Pool } from 'undici';
import { type Contestant, PEER_QUESTION } from '../contestant.ts';
import { exact } from '../packages.ts';
import { peerProgram } from '../serve-peer.ts';

/** node:http and an undici pool: the body is read, nothing is checked, nothing is written. */
export const bareUndici: Contestant = {
  id: 'bare',
  suite: 'free',
  title: `node:http + ${exact('undici')} dispatch, no log`,
  question: PEER_QUESTION,
  readyPath: '/',
  program: peerProgram(import.meta.filename),
};

if (import.meta.main) {
  const { PORT, BACKEND_URL = '' } = process.env;
  const pool = new Pool(BACKEND_URL, { connections: 64, pipelining: 1 });
  const headers = { 'content-type': 'application/json', accept: 'application/json' };
  createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const answer: Buffer[] = [];
      let status = 502;
      pool.dispatch(
        { method: 'POST', path: '/report', headers, body: Buffer.concat(parts) },
        {
          onRequestStart() {},
          onResponseStart(_controller, code) {
            status = code;
          },
          onResponseData(_controller, chunk) {
            answer.push(chunk);
          },
          onResponseEnd() {
            const body = Buffer.concat(answer);
            response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length });
            response.end(body);
          },
          onResponseError() {
            response.writeHead(502).end();
          },
        },
      );
    });
  }).listen(Number(PORT), '127.0.0.1');
  process.once('SIGTERM', () => process.exit(0));
}
