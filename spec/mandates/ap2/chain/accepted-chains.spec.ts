import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hashOf } from '../../../../tools/mandate/maker/tokens.ts';
import { withClaims, withHeader } from '../../../support/ap2/hands.ts';
import { BANK, KID_ONLY, PROVIDER } from '../../../support/ap2/keys.ts';
import { NOW, purchaseWith } from '../../../support/ap2/purchase.ts';
import { mint, refusal, verifyChain } from './chains.ts';

const HOUR = 3_600;
const signingInput = (segment: string): string => segment.split('.').slice(0, 2).join('.');

describe('a chain is accepted', () => {
  it('open and closed: the agent acts for its user', async () => {
    const { payload, segments, jti, checkoutJwt } = mint.autonomous();
    const [open = '', closed = ''] = segments;
    const chain = await verifyChain(payload);
    assert.equal(chain.mode, 'autonomous');
    assert.equal(chain.issuer, PROVIDER);
    assert.equal(chain.nonce, jti);
    assert.deepEqual(
      chain.open.map(({ id, sdHash, mandate }) => [id, sdHash, mandate?.['vct']]),
      [[hashOf(signingInput(open)), hashOf(open), 'mandate.checkout.open.1']],
    );
    assert.equal(chain.closed.id, hashOf(signingInput(closed)));
    assert.equal(chain.closed.sdHash, hashOf(closed));
    assert.deepEqual(chain.closed.mandate, {
      vct: 'mandate.checkout.1',
      checkout_hash: hashOf(checkoutJwt),
      checkout_jwt: checkoutJwt,
    });
    assert.deepEqual(chain.reference, {
      reference: hashOf(closed.slice(0, closed.indexOf('~'))),
      referenceSdHash: hashOf(closed),
    });
    // The hop was signed five seconds ago and may be 300 seconds old: sooner than the mandate's own
    // end.
    assert.equal(chain.ends, NOW - 5 + 300);
  });

  it('with its constraints as they were before they were taken apart', async () => {
    const { open } = await verifyChain(mint.autonomous().payload);
    assert.deepEqual(open[0]?.mandate?.['constraints'], [
      {
        type: 'checkout.line_items',
        items: [{ id: 'line_1', acceptable_items: [{ id: 'market_report', title: 'Market report' }], quantity: 1 }],
      },
      {
        type: 'checkout.allowed_merchants',
        allowed: [{ id: 'test-shop', name: 'Test Shop', website: 'https://www.shop.example' }],
      },
    ]);
  });

  it('through a sub-agent', async () => {
    const { payload, segments } = mint.autonomous({ delegated: true });
    const chain = await verifyChain(payload);
    assert.equal(segments.length, 3);
    assert.deepEqual([chain.mode, chain.open.length], ['autonomous', 2]);
    assert.equal(chain.open[1]?.id, hashOf(signingInput(segments[1] ?? '')));
  });

  it('of the payment family', async () => {
    const { paymentMandate = '' } = mint.autonomous({ payment: true, purchase: purchaseWith() });
    const chain = await verifyChain(paymentMandate, { family: 'payment' });
    assert.equal(chain.closed.mandate?.['vct'], 'mandate.payment.1');
  });

  it('signed by the provider for this very purchase: no hop, no nonce, and its own end', async () => {
    const chain = await verifyChain(mint.direct().payload);
    assert.deepEqual([chain.mode, chain.nonce, chain.open], ['direct', undefined, []]);
    assert.equal(chain.ends, NOW + 290);
  });

  it('signed by the user of a credential: direct, for no open mandate precedes', async () => {
    const { payload, jti } = mint.credential();
    const chain = await verifyChain(payload);
    assert.deepEqual([chain.mode, chain.issuer, chain.nonce, chain.open], ['direct', BANK, jti, []]);
    assert.equal(chain.role.kind, 'credentials');
  });

  it('without iss, from a provider whose key id is enough', async () => {
    const issuer = { key: mint.parties.kidOnly, iss: undefined };
    assert.equal((await verifyChain(mint.autonomous({ issuer }).payload)).issuer, KID_ONLY);
  });

  it('with every type of root and of hop that is used in practice', async () => {
    for (const typ of ['dc+sd-jwt', 'vc+sd-jwt', 'sd+jwt', 'example+sd-jwt'])
      assert.equal(await refusal(mint.autonomous({ hands: { open: withHeader({ typ }) } }).payload), 'none', typ);
    const draft = { subAgent: withHeader({ typ: 'kb-sd-jwt+kb' }), closed: withHeader({ typ: 'kb-sd-jwt' }) };
    assert.equal(await refusal(mint.autonomous({ delegated: true, hands: draft }).payload), 'none');
  });

  it('whose hop binds to the token alone', async () => {
    const opened = mint.open();
    const jwt = (opened.checkout[0] ?? '').split('~')[0] ?? '';
    const closed = withClaims({ sd_hash: undefined, issuer_jwt_hash: hashOf(jwt) });
    assert.equal(await refusal(mint.close(opened, { hands: { closed } }).payload), 'none');
  });

  it('to the last second of its tolerance', async () => {
    const { payload } = mint.autonomous({ life: 100 });
    assert.equal(await refusal(payload, { now: NOW + 159 }), 'none');
    const { payload: old } = mint.autonomous();
    assert.equal(await refusal(old, { now: NOW - 5 + 360 }), 'none');
    const { payload: early } = mint.autonomous({ hands: { closed: withClaims({ iat: NOW + 60, nbf: NOW + 60 }) } });
    assert.equal(await refusal(early), 'none');
  });

  it('until the earliest of its ends', async () => {
    const ends = async (claims: Parameters<typeof withClaims>[0], life: number): Promise<number> =>
      (await verifyChain(mint.autonomous({ life, hands: { open: withClaims(claims) } }).payload)).ends - NOW;
    assert.equal(await ends({}, 100), 100);
    assert.equal(await ends({ exp: NOW + 50 }, 100), 50);
    assert.equal(await ends({ exp: NOW + HOUR }, HOUR), 295);
  });
});
