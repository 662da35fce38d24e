import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../support/records.ts';
import { startTracedWorld, type TracedWorld } from '../traced-world.ts';

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
