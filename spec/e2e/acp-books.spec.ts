import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/json/types.ts';
import { assertAcpError } from '../adapters/acp/testbed.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { eventsUntil, receiptWhen } from '../support/records.ts';
import { paymentWith } from './acp-assistant.ts';
import { type CheckoutReplicas, REPLICAS, startCheckoutReplicas } from './acp-replicas.ts';

for (const kind of REPLICAS)
  describe(`what operators and strangers read of checkouts over ${kind[0]}, through ${kind[1]} gateway process(es)`, () => {
    let replicas: CheckoutReplicas;
    before(async () => {
      replicas = await startCheckoutReplicas(kind);
    });
    after(() => replicas?.stop());

    it('has one event and one receipt a call, and a repetition adds none', async () => {
      const gateway = replicas.gateways[0] ?? assert.fail('no gateway');
      const eventsOf = async (requestId: unknown, last: string) =>
        (await eventsUntil(gateway, String(requestId), last)).map((event) => [event.type, event.adapter, event.data]);
      const path = await replicas.assistant.open();
      const complete = `${path}/complete`;
      const protocol = { protocol: 'acp', operation: 'completeCheckoutSession' };
      const { headers } = await replicas.assistant.post(complete, paymentWith('tok_1'), `books ${path}`);
      assert.match(String(headers['x-request-id']), /^acp_/);
      assert.deepEqual(await eventsOf(headers['x-request-id'], 'resource.delivered'), [
        ['resource.requested', 'acp', protocol],
        ['backend.called', 'acp', { ...protocol, status: 200 }],
        ['resource.delivered', 'acp', protocol],
      ]);
      const receipt = await receiptWhen(gateway, String(headers['x-request-id']), true);
      assert.deepEqual(
        [receipt.protocol, receipt.resourceId, receipt.backendStatus],
        ['acp', 'completeCheckoutSession', 200],
      );
      const again = await replicas.assistant.post(complete, paymentWith('tok_1'), `books ${path}`);
      assert.deepEqual(await eventsOf(again.headers['x-request-id'], 'resource.delivered'), [
        ['resource.requested', 'acp', protocol],
        ['resource.delivered', 'acp', { ...protocol, replayed: true }],
      ]);
      replicas.merchant.misbehave(
        { kind: 'status', status: 500, acts: false },
        { operation: 'completeCheckoutSession' },
      );
      const failed = await replicas.assistant.post(`${await replicas.assistant.open()}/complete`, paymentWith('tok_1'));
      assertAcpError(failed, 502, 'processing_error');
      assert.deepEqual(await eventsOf(failed.headers['x-request-id'], 'backend.failed'), [
        ['resource.requested', 'acp', protocol],
        ['backend.failed', 'acp', { ...protocol, code: 'BACKEND_ERROR', status: 500 }],
      ]);
    });

    it('is counted: outcomes of claims, unknown ends, and faults of the merchant', async () => {
      const before = await counted();
      const path = await replicas.assistant.open();
      const complete = `${path}/complete`;
      const key = `counted ${path}`;
      replicas.merchant.misbehave({ kind: 'document', edit: ({ totals: _, ...document }) => document });
      assertAcpError(await replicas.assistant.post(complete, paymentWith('tok_1'), key), 502, 'processing_error');
      assert.equal((await replicas.assistant.post(complete, paymentWith('tok_1'), key)).status, 200);
      assert.equal((await replicas.assistant.post(complete, paymentWith('tok_1'), key)).status, 200);
      assertAcpError(await replicas.assistant.post(complete, paymentWith('tok_2'), key), 422, 'idempotency_conflict');
      const after = await counted();
      const grown = [...after].flatMap(([name, value]) => {
        const by = value - (before.get(name) ?? 0);
        return by === 0 ? [] : [[name.replace('acg_checkout_', ''), by] as const];
      });
      assert.deepEqual(Object.fromEntries(grown), {
        'claims_total{outcome="first"}': 2,
        'claims_total{outcome="again"}': 1,
        'claims_total{outcome="done"}': 1,
        'claims_total{outcome="conflict"}': 1,
        'unknown_total{why="invalid_document"}': 1,
        'invalid_documents_total{operation="completeCheckoutSession",pointer="$.totals"}': 1,
      });
      assert.equal(replicas.orders(path), 1, 'the second call read the session back');
    });

    it('is announced in readiness and discovery, without its backend', async () => {
      for (const { url } of replicas.gateways) {
        const ready = (await (await fetch(`${url}/ready`)).json()) as { readonly adapters: readonly JsonObject[] };
        assert.deepEqual(
          ready.adapters.find(({ name }) => name === 'acp'),
          { name: 'acp', status: 'pass' },
        );
        const text = await (await fetch(`${url}/.well-known/agent-commerce`)).text();
        const commerce = JSON.parse(text) as {
          readonly protocols: JsonObject;
          readonly adapters: readonly JsonObject[];
        };
        assert.deepEqual(commerce.protocols['acp'], { enabled: true, mountPath: '/acp' });
        const adapter = commerce.adapters.find(({ name }) => name === 'acp');
        assert.deepEqual([adapter?.['supportedSpec'], adapter?.['status']], ['2026-04-17', 'experimental']);
        const own = await (await fetch(`${url}/.well-known/acp.json`)).text();
        assert.equal((JSON.parse(own) as JsonObject)['api_base_url'], `${replicas.gateways[0]?.url}/acp`);
        assert.deepEqual((JSON.parse(own) as { capabilities: JsonObject }).capabilities['services'], ['checkout']);
        for (const document of [text, own]) assert.ok(!document.includes(replicas.merchant.url));
      }
    });

    /** Counters of checkouts, of all gateways together. */
    const counted = async (): Promise<ReadonlyMap<string, number>> => {
      const sums = new Map<string, number>();
      for (const { managementUrl } of replicas.gateways)
        for (const line of (await readMetrics(managementUrl)).split('\n')) {
          const [, name = '', value = ''] = /^(acg_checkout_\S+_total\S*) (\d+)$/.exec(line) ?? [];
          if (name !== '') sums.set(name, (sums.get(name) ?? 0) + Number(value));
        }
      return sums;
    };
  });
