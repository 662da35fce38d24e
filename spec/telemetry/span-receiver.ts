import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One span as OTLP/HTTP carries it in JSON. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly events: readonly string[];
  readonly status: number;
}

/** A collector of traces: it takes what the exporter of the gateway sends. */
export interface SpanReceiver {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  readonly resource: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  /** Every body as it came. */
  readonly bodies: readonly string[];
  stop(): Promise<void>;
}

/** Listens on a free port of loopback. `answer` may misbehave; by default everything is taken. */
export async function startSpanReceiver(
  answer: http.RequestListener = (_req, res) =>
    void res.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
): Promise<SpanReceiver> {
  const spans: ReceivedSpan[] = [];
  const bodies: string[] = [];
  const resource: Record<string, string> = {};
  let headers: IncomingHttpHeaders = {};
  const server = http.createServer((req, res) => {
    let body = '';
    req.setEncoding('utf8');
    req.on('data', (chunk: string) => {
      body += chunk;
    });
    req.on('end', () => {
      headers = req.headers;
      bodies.push(body);
      for (const group of listOf(JSON.parse(body), 'resourceSpans')) {
        Object.assign(resource, attributesOf(member(group, 'resource')));
        for (const scope of listOf(group, 'scopeSpans')) spans.push(...listOf(scope, 'spans').map(spanOf));
      }
      answer(req, res);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    bodies,
    resource,
    get headers() {
      return headers;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function spanOf(span: unknown): ReceivedSpan {
  const text = (name: string): string => String(member(span, name));
  const parent = member(span, 'parentSpanId');
  return {
    traceId: text('traceId'),
    spanId: text('spanId'),
    ...(typeof parent === 'string' ? { parentSpanId: parent } : {}),
    name: text('name'),
    kind: Number(member(span, 'kind')),
    startTimeUnixNano: text('startTimeUnixNano'),
    endTimeUnixNano: text('endTimeUnixNano'),
    attributes: attributesOf(span),
    events: listOf(span, 'events').map((event) => String(member(event, 'name'))),
    status: Number(member(member(span, 'status'), 'code') ?? 0),
  };
}

function attributesOf(holder: unknown): Record<string, string> {
  return Object.fromEntries(
    listOf(holder, 'attributes').map((pair) => {
      const value = member(pair, 'value');
      return [String(member(pair, 'key')), String(isRecord(value) ? Object.values(value)[0] : undefined)];
    }),
  );
}

function listOf(holder: unknown, name: string): readonly unknown[] {
  const list = member(holder, name);
  return Array.isArray(list) ? list : [];
}

function member(holder: unknown, name: string): unknown {
  return isRecord(holder) ? holder[name] : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
