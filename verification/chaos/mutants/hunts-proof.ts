/** Hunts that need copies, spellings and spent nonces of a proof. */

import assert from 'node:assert/strict';
import { type FacilitatorCall, relayTo, startHostileFacilitator } from '../../../spec/support/hostile-facilitator.ts';
import { eventually } from '../../../spec/support/records.ts';
import { ask, insist, signedCall, takeBack } from '../steps/buyer.ts';
import { purchaseOf } from '../steps/purchases.ts';
import { openSite } from '../steps/site.ts';
import { assertAsked, assertExecuted, type Stage } from './stage.ts';

const COPIES = 6;

/** Copies of one proof at the same moment. */
export async function sendCopies(stage: Stage): Promise<void> {
  const { ground } = stage;
  const site = await openSite(ground, { store: 'redis', rail: 'local' });
  await stage.start(site);
  const purchase = purchaseOf('plain POST');
  // With a key, so that a copy that waited too long on a slow machine still has the answer.
  const call = await signedCall(ground, site, purchase.resourceId, purchase.input, 'key-of-the-buyer');
  const answers = await Promise.all(Array.from({ length: COPIES }, () => insist(call, site.baseUrl)));
  assertAsked(ground, purchase, 1, 'copies of one proof are one purchase');
  for (const answer of answers) assert.equal(answer.status, 200, 'every copy has the answer');
}

/** The same authorization in another encoding, after it was delivered. */
export async function respell(stage: Stage): Promise<void> {
  const { ground } = stage;
  const site = await openSite(ground, { store: 'redis', rail: 'local' });
  await stage.start(site);
  const purchase = purchaseOf('plain POST');
  const call = await signedCall(ground, site, purchase.resourceId, purchase.input);
  assert.equal((await insist(call, site.baseUrl)).status, 200);
  // The buyer has the answer a moment before the record is `delivered`; until then the same proof
  // gets it once more.
  await eventually(async () => (await site.receipts('delivered=true'))[0], 'a delivered receipt');
  const response = await ask({ ...call, proof: respelled(call.proof) }, site.baseUrl);
  assertAsked(ground, purchase, 1, 'one authorization is one purchase, however it is spelled');
  assert.equal(response.error?.details?.state, 'delivered', `one authorization is one purchase: ${response.text}`);
}

/** v as 0 or 1 instead of 27 or 28: the same signature. */
function respelled(proof: string): string {
  const payload = JSON.parse(Buffer.from(proof, 'base64').toString()) as { payload: { signature: string } };
  const { signature } = payload.payload;
  const v = Number.parseInt(signature.slice(-2), 16) - 27;
  payload.payload.signature = `${signature.slice(0, -2)}0${v}`;
  return Buffer.from(JSON.stringify(payload)).toString('base64');
}

/** The facilitator disconnects, and broadcasts afterwards. */
export async function leaveUnanswered(stage: Stage): Promise<void> {
  const { ground } = stage;
  const { calls, unanswered, url } = await brokenOnce(stage);
  const site = await openSite(ground, { store: 'redis', rail: { url } });
  await stage.start(site);
  const purchase = purchaseOf('GET');
  const call = await signedCall(ground, site, purchase.resourceId, purchase.input);
  const first = await ask(call, site.baseUrl);
  assert.equal(calls(), 1, 'the settlement was asked for');
  await unanswered();
  assert.notEqual(first.status, 402, '402 while the money may move: the buyer would pay twice');
  const response = await insist(call, site.baseUrl);
  assert.ok(purchase.answers(response.text));
  assert.equal(await site.income(), call.units);
}

/**
 * Passes calls to the official facilitator, except the first settlement, which `unanswered`
 * handles.
 */
async function brokenOnce({ ground, keep }: Stage) {
  const facilitator = keep(await startHostileFacilitator(`eip155:${ground.chain.chainId}`));
  const official = relayTo(ground.facilitatorUrl);
  let broken: FacilitatorCall | undefined;
  let settlements = 0;
  facilitator.script({
    verify: official,
    supported: official,
    settle: (call) => {
      settlements += 1;
      if (broken !== undefined) return official(call);
      broken = call;
      return { kind: 'reset' };
    },
  });
  const unanswered = async (): Promise<void> => {
    if (broken !== undefined) await official(broken);
  };
  return { url: facilitator.url, calls: () => settlements, unanswered };
}

/** The backend fails once at a call that must not be repeated, and the buyer tries again. */
export async function failOnce(stage: Stage): Promise<void> {
  const { ground } = stage;
  const site = await openSite(ground, { store: 'redis', rail: 'local' });
  await stage.start(site);
  const call = await signedCall(ground, site, 'flaky_post', { failures: 1 });
  const first = await ask(call, site.baseUrl);
  assert.equal(first.error?.code, 'BACKEND_ERROR', first.text);
  const response = await ask(call, site.baseUrl);
  assertExecuted(ground, call, 1, 'what must not be repeated is sent once');
  assert.equal(response.error?.details?.state, 'undelivered', response.text);
}

/** The buyer cancels the authorization before it is used. */
export async function cancelNonce(stage: Stage): Promise<void> {
  const { ground } = stage;
  const site = await openSite(ground, { store: 'redis', rail: 'local' });
  await stage.start(site);
  const purchase = purchaseOf('GET');
  const call = await signedCall(ground, site, purchase.resourceId, purchase.input);
  await takeBack(ground, call);
  const response = await ask(call, site.baseUrl);
  assertAsked(ground, purchase, 0, 'nothing is delivered unpaid');
  assert.equal(response.status, 402, response.text);
}
