/** One HTTP request to a gateway and its answer, with the checks of the error envelope. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { Ajv2020 } from 'ajv/dist/2020.js';

const schema = (name: string): object =>
  JSON.parse(readFileSync(new URL(`../../schemas/${name}.schema.json`, import.meta.url), 'utf8')) as object;
/** Whether a body is the error envelope. */
export const isEnvelope = new Ajv2020({ strict: false, validateFormats: false }).compile(schema('error'));

/** A request as it goes over the wire. */
export interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}
export interface Answered {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

/** A plain request: `fetch` would not send what some of these rows need. */
export function ask(
  base: string,
  { method = 'POST', path, headers = { 'content-type': 'application/json' }, body }: Asked,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const request = http.request(`${base}${path}`, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      );
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** The one envelope of contract 1.1, under the id of its answer. */
export function assertEnvelope(answer: Answered, code: string): Record<string, unknown> {
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
  const body = JSON.parse(answer.text) as Record<string, unknown>;
  assert.ok(isEnvelope(body), JSON.stringify(isEnvelope.errors));
  assert.equal(body['code'], code);
  assert.equal(body['requestId'], answer.headers['x-request-id']);
  assert.equal(answer.headers['x-powered-by'], undefined);
  return body;
}
