import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inPlaceUrls } from '../../../../src/payments/x402/wire/challenge.ts';
import { entriesOf } from '../../../../src/payments/x402/wire/offers.ts';
import { decodeProof, encodeProof } from '../../../../src/payments/x402/wire/proof.ts';
import type { BazaarForms, Extension, PaymentPayload } from '../../../../src/payments/x402/wire/types.ts';
import { freshAccount, genuineProof, termsFor } from '../signing.ts';

const BASE = 'https://shop.example';
const INVOKE = `${BASE}/api/resources/report/invoke`;
const IN_PLACE = `${BASE}/reports/Berlin`;
const about = { description: 'Prices of one city', mimeType: 'text/csv' };
const form = (type: string, name: string): Extension => ({ info: { input: { type, name } }, schema: {} });
const forms: BazaarForms = {
  about,
  invoke: form('http', 'invoke'),
  inPlace: form('http', 'in place'),
  tool: { extension: form('mcp', 'tool'), url: `${BASE}/mcp` },
};
const offer = { resourceUrl: INVOKE, inPlace: inPlaceUrls(`${BASE}/reports/{city}`) };
const payload = (await genuineProof(freshAccount(), termsFor())).payload;

/** The payment of a buyer that was at this URL, as the gateway keeps it. */
function kept(url: string | undefined, echoed: Extension | undefined): PaymentPayload {
  const { resource: _, ...bare } = payload;
  const sent = {
    ...bare,
    ...(url === undefined ? {} : { resource: { url, description: 'spam' } }),
    ...(echoed === undefined ? {} : { extensions: { bazaar: { ...echoed, spam: true } } }),
  };
  const decoded = decodeProof(encodeProof(sent));
  return decoded.kind === 'decoded' ? decoded.payload : assert.fail(decoded.reason);
}

const entryFor = (url: string | undefined, echoed?: Extension, more: Partial<BazaarForms> = {}) =>
  entriesOf([{ ...offer, bazaar: { ...forms, ...more } }])(kept(url, echoed));

describe('what a facilitator may catalogue of a payment', () => {
  it('is the form of the URL that it names, in our words', () => {
    assert.deepEqual(entryFor(INVOKE), { resource: { url: INVOKE, ...about }, extension: forms.invoke });
    assert.deepEqual(entryFor(IN_PLACE), { resource: { url: IN_PLACE, ...about }, extension: forms.inPlace });
  });

  it('is the tool where its offer was that of the tool, or it is nothing else', () => {
    const tool = { resource: { url: `${BASE}/mcp`, ...about }, extension: forms.tool?.extension };
    assert.deepEqual(entryFor(INVOKE, forms.tool?.extension), tool);
    assert.deepEqual(entryFor(INVOKE, undefined, { invoke: undefined }), tool);
    assert.deepEqual(entryFor(INVOKE, forms.invoke)?.extension, forms.invoke);
    assert.deepEqual(entryFor(INVOKE, forms.tool?.extension, { tool: undefined })?.extension, forms.invoke);
  });

  it('is nothing where the payment names no URL, or that of a resource without forms', () => {
    assert.equal(entryFor(undefined), undefined);
    assert.equal(entryFor(`${BASE}/elsewhere`), undefined);
    assert.equal(entryFor(IN_PLACE, undefined, { inPlace: undefined }), undefined);
    assert.equal(entriesOf([offer])(kept(INVOKE, forms.invoke)), undefined);
  });

  it('is kept with the payment as two words at most, whatever a client echoes', () => {
    assert.deepEqual(kept(INVOKE, forms.tool?.extension).extensions, {
      bazaar: { info: { input: { type: 'mcp' } } },
    });
    for (const echoed of [forms.invoke, { info: [], schema: {} }, { info: { input: 'mcp' }, schema: {} }])
      assert.equal(kept(INVOKE, echoed).extensions, undefined);
  });
});
