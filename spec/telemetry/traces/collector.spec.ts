import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { ConfigError } from '../../../src/problems/problem.ts';
import { collectorFrom } from '../../../src/telemetry/traces/tracing.ts';
import { eventually } from '../../support/records.ts';
import { startTracedWorld, type TracedWorld } from '../traced-world.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

describe('the collector of traces', () => {
  for (const { rule, env, on } of [
    { rule: 'without an endpoint', env: { OTEL_SERVICE_NAME: 'shop' }, on: false },
    { rule: 'with an empty endpoint, which is none', env: { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, on: false },
    { rule: 'with the endpoint of all signals', env: ENDPOINT, on: true },
    {
      rule: 'with the endpoint of traces',
      env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://c/v1/traces' },
      on: true,
    },
    { rule: 'with the SDK disabled', env: { ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' }, on: false },
    { rule: 'with the SDK not disabled', env: { ...ENDPOINT, OTEL_SDK_DISABLED: 'false' }, on: true },
    { rule: 'with no exporter of traces', env: { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }, on: false },
    { rule: 'of metrics alone', env: { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://c:4318' }, on: false },
  ]) {
    it(`is ${on ? 'there' : 'not there'} ${rule}`, () => assert.equal(collectorFrom(env) !== undefined, on));
  }

  for (const endpoint of ['collector:4318', 'ftp://collector', 'grpc://collector:4317', 'secret-in-here']) {
    it(`is refused at ${endpoint}, by the name of the variable and without its value`, () => {
      const refused = (thrown: unknown): boolean =>
        thrown instanceof ConfigError &&
        thrown.message.includes('OTEL_EXPORTER_OTLP_ENDPOINT') &&
        !thrown.message.includes(endpoint);
      assert.throws(() => collectorFrom({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }), refused);
    });
  }

  it('has the password in its URL as a secret', () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://gateway:pass%20word@127.0.0.1:4318' };
    assert.deepEqual(collectorFrom(env)?.secrets, ['pass%20word', 'pass word']);
  });

  it('has its credentials as secrets, as they are written and as they are sent', () => {
    const env = { ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abcdefgh,x-tenant=short' };
    assert.deepEqual(collectorFrom(env)?.secrets, ['Bearer%20abcdefgh', 'Bearer abcdefgh']);
  });

  it('has a warning if gRPC is configured, which is not supported', () => {
    assert.equal(collectorFrom({ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })?.warnings.length, 1);
    assert.deepEqual(collectorFrom({ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' })?.warnings, []);
  });
});

describe('a collector', () => {
  let started: TracedWorld;
  before(async () => {
    started = await startTracedWorld();
  });
  after(() => started.world.stop());

  for (const { collector, answer } of [
    { collector: 'never answers', answer: () => undefined },
    { collector: 'breaks every connection', answer: (req) => void req.socket.resetAndDestroy() },
    {
      collector: 'answers without end',
      answer: (_req, res) => {
        res.writeHead(200);
        const more = (): void => {
          while (!res.destroyed && res.write(Buffer.alloc(65_536)));
        };
        res.on('drain', more);
        more();
      },
    },
  ] satisfies readonly { readonly collector: string; readonly answer: RequestListener }[]) {
    it(`that ${collector} delays neither calls nor the end of the process`, async () => {
      const { gateway, receiver } = await started.traced(answer, { OTEL_EXPORTER_OTLP_TIMEOUT: '60000' });
      const began = performance.now();
      for (let call = 0; call < 50; call += 1) assert.equal((await started.invoke('cities', {})).status, 200);
      await eventually(async () => (receiver.bodies.length > 0 ? true : undefined), 'the collector is asked');
      const perCall = (performance.now() - began) / 50;
      assert.ok(perCall < 100, `${perCall} ms a call`);
      const stopping = performance.now();
      const { code } = await gateway.stop();
      assert.equal(code, 0);
      const took = performance.now() - stopping;
      assert.ok(took < 4_000, `${took} ms to end`);
      assert.match(gateway.output(), /"msg":"stopped"/);
      await receiver.stop();
    });
  }
});
