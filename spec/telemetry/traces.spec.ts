import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createBuyer } from '../support/buyer.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { eventually } from '../support/records.ts';
import type { World } from '../support/world.ts';
import type { ReceivedSpan, SpanReceiver } from './span-receiver.ts';
import { CREDENTIAL, startTracedWorld, type TracedWorld } from './traced-world.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';
const TRACEPARENT = `00-${TRACE}-${CALLER}-01`;
const TRACESTATE = 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE';
/** Of OTLP. */
const SERVER = 2;
const CLIENT = 3;
const ERROR = 2;

describe('traces', () => {
  let world: World;
  let invoke: TracedWorld['invoke'];
  let receiver: SpanReceiver;
  let gateway: GatewayProcess;
  before(async () => {
    const started = await startTracedWorld();
    ({ world, invoke } = started);
    ({ gateway, receiver } = await started.traced());
  });
  after(async () => {
    try {
      await gateway.stop();
      await receiver.stop();
    } finally {
      await world.stop();
    }
  });

  const serverSpan = (requestId: string): Promise<ReceivedSpan> =>
    eventually(
      async () => receiver.spans.find(({ attributes }) => attributes['acg.request_id'] === requestId),
      `the span of ${requestId}`,
    );
  const below = (span: ReceivedSpan): readonly ReceivedSpan[] =>
    receiver.spans.filter(({ parentSpanId }) => parentSpanId === span.spanId);
  const sentTo = (requestId: string) =>
    world.backend.requests.find(({ headers }) => headers['x-request-id'] === requestId) ?? assert.fail('not called');

  it('show a paid call below its caller, with the middleware that waits, and go on to the backend', async () => {
    const input = { city: 'Berlin' };
    const terms = (await (await invoke('market_report', input)).json()) as {
      readonly payment: { readonly envelope: unknown };
    };
    const proof = await (await createBuyer(world.chain)).pay(terms.payment.envelope);
    const answer = await invoke('market_report', input, {
      'payment-signature': proof,
      'x-request-id': 'traced-purchase',
      traceparent: TRACEPARENT,
      tracestate: TRACESTATE,
    });
    assert.equal(answer.status, 200);
    await answer.text();
    const span = await serverSpan('traced-purchase');
    assert.deepEqual(
      { traceId: span.traceId, parent: span.parentSpanId, kind: span.kind, name: span.name, status: span.status },
      { traceId: TRACE, parent: CALLER, kind: SERVER, name: 'POST /api/resources/:id/invoke', status: 0 },
    );
    assert.deepEqual(span.attributes, {
      'http.request.method': 'POST',
      'http.route': '/api/resources/:id/invoke',
      'http.response.status_code': '200',
      'acg.request_id': 'traced-purchase',
      'acg.channel': 'http',
      'acg.resource': 'market_report',
      'acg.outcome': 'delivered',
    });
    const steps = below(span);
    assert.deepEqual(
      steps.map(({ name }) => name),
      ['verify', 'settle', 'forward', 'conclude'],
    );
    const [, settle, forward] = steps;
    assert.deepEqual(settle?.events, ['verified', 'settling', 'sending', 'signed', 'answered', 'settled']);
    assert.equal(forward?.kind, CLIENT);
    assert.equal(forward?.attributes['http.response.status_code'], '200');
    for (const step of steps) {
      assert.equal(step.traceId, TRACE);
      assert.ok(BigInt(step.startTimeUnixNano) >= BigInt(span.startTimeUnixNano), `${step.name} begins within`);
      assert.ok(BigInt(step.endTimeUnixNano) <= BigInt(span.endTimeUnixNano), `${step.name} ends within`);
    }
    const { headers } = sentTo('traced-purchase');
    assert.equal(headers['traceparent'], `00-${TRACE}-${forward?.spanId}-01`);
    assert.equal(headers['tracestate'], TRACESTATE);
    const line = await gateway.logged(({ requestId }) => requestId === 'traced-purchase');
    assert.equal(line['traceId'], TRACE);

    assert.equal(receiver.resource['service.name'], 'market-shop-gateway');
    assert.equal(receiver.resource['k8s.pod.name'], 'shop-1');
    assert.equal(receiver.headers.authorization, `Bearer ${CREDENTIAL}`);
    const sent = receiver.bodies.join();
    const payer = JSON.parse(Buffer.from(proof, 'base64').toString()).payload.authorization.from as string;
    for (const secret of [
      proof.slice(0, 40),
      payer,
      payer.slice(2).toLowerCase(),
      world.adminToken,
      CREDENTIAL,
      'Berlin',
    ])
      assert.ok(!sent.includes(secret), 'a span has content of a call');
    assert.ok(!gateway.output().includes(CREDENTIAL));
  });

  it('of MCP take the trace of the message, before that of the request', async () => {
    const other = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
    const message = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'free_failing', arguments: { status: 500 }, _meta: { traceparent: TRACEPARENT } },
    };
    const headers = { 'content-type': 'application/json', traceparent: other, 'x-request-id': 'traced-tool' };
    const answer = await fetch(`${world.gateway.baseUrl}/mcp`, {
      method: 'POST',
      headers,
      body: JSON.stringify(message),
    });
    await answer.text();
    const span = await serverSpan('traced-tool');
    assert.deepEqual([span.traceId, span.parentSpanId, span.name], [TRACE, CALLER, 'POST /mcp']);
    assert.equal(span.attributes['acg.outcome'], 'BACKEND_ERROR');
    assert.equal(span.attributes['error.type'], 'BACKEND_ERROR');
    assert.equal(span.status, ERROR, 'a failure is an error, whatever the HTTP status');
  });

  it('begin here without a valid traceparent, and a lone tracestate is not sent on', async () => {
    const headers = {
      'x-request-id': 'root',
      traceparent: `00-${'0'.repeat(32)}-${CALLER}-01`,
      tracestate: TRACESTATE,
    };
    await (await invoke('cities', {}, headers)).text();
    const span = await serverSpan('root');
    assert.equal(span.parentSpanId, undefined);
    const sent = sentTo('root').headers;
    const forward = below(span).find(({ name }) => name === 'forward');
    assert.equal(sent['traceparent'], `00-${span.traceId}-${forward?.spanId}-01`);
    assert.equal(sent['tracestate'], undefined);
  });

  it('that the caller does not sample are not sent, and the backend gets that flag', async () => {
    await (await invoke('cities', {}, { 'x-request-id': 'unsampled', traceparent: `00-${TRACE}-${CALLER}-00` })).text();
    await (await invoke('cities', {}, { 'x-request-id': 'sampled' })).text();
    await serverSpan('sampled');
    assert.ok(!receiver.bodies.join().includes('unsampled'));
    assert.match(String(sentTo('unsampled').headers['traceparent']), new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
  });
});
