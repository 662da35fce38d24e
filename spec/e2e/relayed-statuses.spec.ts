import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { dataOf, message, send } from '../adapters/a2a/post.ts';
import { callTool } from '../adapters/mcp/post.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { CURRENCY } from '../support/config.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { answerJson } from '../support/http-server.ts';
import { eventsUntil, receiptWhen } from '../support/records.ts';
import { sampleResources } from '../support/resources.ts';
import { type Route, route, type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { AFTER, SEALING } from '../support/settled-after.ts';
import { proofFor } from '../support/testbed.ts';
import { isEnvelope } from './ask.ts';
import { type Brought, bring, failure } from './bring.ts';
import { decode } from './proofs.ts';

const PRICE_UNITS = 1_000n;
const BODY = { error: 'no such thing', hint: ['Berlin', 'Lisboa'] };
const HEADERS = { 'retry-after': '7', 'set-cookie': 'own=1', server: 'merchant/1' };
/** What an agent is told of a failed answer. */
const TOLD = (status: number) => ({ status, headers: { 'retry-after': '7' }, body: BODY });

const FAILING: Route['answer'] = async ({ url }, response, state) => {
  await state.released();
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  answerJson(response, Number(url.slice('/fail/'.length)), BODY);
};

const { failing, failing_post: posted } = sampleResources(CURRENCY) as Record<'failing' | 'failing_post', object>;
const backend = (resource: object, more: object) => ({
  ...resource,
  backend: { ...(resource as { backend: object }).backend, ...more },
});
const settledAfter = (relayStatuses: object) => {
  const { pricing } = failing as { pricing: object };
  return {
    ...backend(failing, { ...(AFTER['backend'] as object), relayStatuses }),
    pricing: { ...pricing, settle: 'after' },
  };
};
const RESOURCES = {
  failing: backend(failing, { relayStatuses: [404] }),
  failing_post: backend(posted, { relayStatuses: { sold: [404] } }),
  chosen_after: settledAfter({ sold: [404], unpaid: [409, 422] }),
  listed_after: settledAfter([404]),
};

describe('a status of the backend that is relayed', () => {
  let chain: Chain;
  let merchant: SampleBackend;
  let gateway: TestGateway;
  let buyer: Buyer;
  before(async () => {
    [chain, merchant] = await Promise.all([
      startChain(),
      startSampleBackend({ routes: [route('GET|POST', '/fail/\\d{3}', FAILING)] }),
    ]);
    const overrides = {
      protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
      storage: { sealing: SEALING },
      resources: RESOURCES,
    };
    gateway = await openGateway({ chain, backendUrl: merchant.url, facilitator: { mode: 'local' }, overrides });
    buyer = await createBuyer(chain);
  });
  beforeEach(() => {
    merchant.release();
    merchant.forget();
  });
  after(async () => {
    await gateway?.close();
    await Promise.all([chain?.stop(), merchant?.stop()]);
  });

  const income = (): Promise<bigint> => chain.balanceOf(gateway.config.x402?.payTo ?? '');
  const proofOf = (id: string, status: number): Promise<string> => proofFor(gateway, buyer, id, { status });
  const buy = async (id: string, status: number): Promise<Brought & { readonly proof: string }> => {
    const proof = await proofOf(id, status);
    return { ...(await bring(gateway, id, { status }, { proof })), proof };
  };
  /** What a purchase brings the merchant. */
  const paidBy = async <Result>(purchase: () => Promise<Result>): Promise<readonly [Result, bigint]> => {
    const earlier = await income();
    const result = await purchase();
    return [result, (await income()) - earlier];
  };
  const isRelayed = (answer: Brought, status: number): void => {
    assert.deepEqual([answer.status, JSON.parse(answer.bytes.toString())], [status, BODY]);
    const told = ['retry-after', 'set-cookie', 'server', 'cache-control'].map((name) => answer.headers.get(name));
    assert.deepEqual(told, ['7', null, null, 'private, no-store']);
  };

  for (const id of ['failing', 'failing_post', 'chosen_after'])
    describe(`and sold: ${id}`, () => {
      it('is paid once and delivered as it is; the same proof gets it again', async () => {
        const [answer, paid] = await paidBy(() => buy(id, 404));
        isRelayed(answer, 404);
        assert.deepEqual([answer.payment?.success, paid], [true, PRICE_UNITS]);
        const receipt = await receiptWhen(gateway, answer.requestId, true);
        assert.deepEqual([receipt.backendStatus, receipt.id], [404, answer.payment?.receiptId]);
        const events = await eventsUntil(gateway, answer.requestId, 'resource.delivered');
        assert.ok(!events.some(({ type }) => type === 'backend.failed'));

        const [again, more] = await paidBy(() => bring(gateway, id, { status: 404 }, answer));
        isRelayed(again, 404);
        assert.deepEqual([again.headers.get('idempotent-replayed'), more, merchant.requests.length], ['true', 0n, 1]);
      });
    });

  for (const [id, status] of [
    ['chosen_after', 409],
    ['listed_after', 404],
  ] as const)
    it(`and unpaid: ${id} with ${status} takes no payment on any channel, and the same proof begins anew`, async () => {
      const [, paid] = await paidBy(async () => {
        const answer = await buy(id, status);
        isRelayed(answer, status);
        assert.equal(answer.payment, undefined);
        const again = await bring(gateway, id, { status }, answer);
        isRelayed(again, status);
        assert.equal(again.headers.get('idempotent-replayed'), null);
        const { structuredContent, _meta } = await callTool(gateway.url, id, { status, _payment: answer.proof });
        assert.deepEqual([structuredContent, _meta['x402/payment-response']], [BODY, undefined]);
        const metadata = { 'x402.payment.payload': decode(answer.proof) };
        const task = await send(gateway.url, message(id, { status }, { metadata }));
        assert.deepEqual([dataOf(task), task.metadata['x402/payment-response']], [BODY, undefined]);
        const events = await eventsUntil(gateway, answer.requestId, 'backend.called');
        assert.deepEqual(events.at(-1)?.data, { status });
      });
      assert.deepEqual([paid, merchant.requests.length], [0n, 4]);
    });

  it('unlike another one, which fails a paid call: the agent gets what the merchant says, on every channel', async () => {
    const envelopes = [
      failure(await buy('failing', 422), 502, 'BACKEND_ERROR'),
      (await callTool(gateway.url, 'failing', { status: 422, _payment: await proofOf('failing', 422) }))
        .structuredContent,
      dataOf(
        await send(
          gateway.url,
          message(
            'failing',
            { status: 422 },
            { metadata: { 'x402.payment.payload': decode(await proofOf('failing', 422)) } },
          ),
        ),
      ),
    ];
    for (const envelope of envelopes) {
      assert.ok(isEnvelope(envelope), JSON.stringify(isEnvelope.errors));
      const { message: text, details, retryable } = envelope as ReturnType<typeof failure>;
      assert.deepEqual((details as { backend?: object }).backend, TOLD(422));
      assert.ok(retryable);
      assert.match(
        text,
        /^You have paid, and the merchant backend answered 422\. Another call may not change that\. Do not sign a new payment: the same one collects until \d{4}-[\dT:.-]+Z\. What stays undelivered is refunded by the merchant\.$/,
      );
    }
  });
});
