/** The backend behind the tools of `mcp-config.ts`. */

import { answerBytes, answerJson } from './http-server.ts';
import { type Route, route, type SampleBackend, startSampleBackend } from './sample-backend.ts';

/** The text that the conformance suite expects of `test_simple_text`. */
export const SIMPLE_TEXT = 'This is a simple text response for testing.';
/** What `/misfit` answers: no schema that wants a number of degrees fits it. */
export const MISFIT = { city: 'Oslo', celsius: 'mild' } as const;
/** What `/cities` answers. */
export const CITIES: readonly string[] = ['Berlin', 'Lisboa', 'São Paulo'];

/** A picture, a sound and a document, as short as their formats allow to be recognised. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const WAV = Buffer.from('UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=', 'base64');
const PDF = Buffer.from('%PDF-1.7\n%%EOF\n');

const ROUTES: readonly Route[] = [
  route('GET', '/text', (_, response) => answerJson(response, 200, SIMPLE_TEXT)),
  route('GET', '/failing', (_, response) => answerJson(response, 500, { error: 'the merchant says no' })),
  route('GET', '/cities', (_, response) => answerJson(response, 200, CITIES)),
  route('GET', '/misfit', (_, response) => answerJson(response, 200, MISFIT)),
  route('GET', '/picture', (_, response) => answerBytes(response, 200, 'image/png', PNG)),
  route('GET', '/sound', (_, response) => answerBytes(response, 200, 'audio/wav', WAV)),
  route('GET', '/document', (_, response) => answerBytes(response, 200, 'application/pdf', PDF)),
  route('GET', '/weather/[^/]+', ({ url }, response) =>
    answerJson(response, 200, { city: decodeURIComponent(url.split(/[/?]/)[2] ?? ''), celsius: 21 }),
  ),
  route('POST', '/echo', ({ body }, response) => answerBytes(response, 200, 'application/json', body)),
];

/** Starts the backend on a free port of 127.0.0.1. */
export function startToolBackend(): Promise<SampleBackend> {
  return startSampleBackend({ routes: ROUTES });
}
