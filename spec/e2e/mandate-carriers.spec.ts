import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Json } from '../../src/json/json.ts';
import { CHANNELS } from './mandate-channels.ts';
import { INPUT, type MandateTestbed, openMandateTestbed, TOOL } from './mandate-testbed.ts';

const objectOf = (header: string): Json => JSON.parse(Buffer.from(header, 'base64url').toString()) as Json;

for (const channel of ['mcp', 'a2a'] as const)
  describe(`where a mandate can be, over ${channel}`, () => {
    let testbed: MandateTestbed;
    before(async () => {
      testbed = await openMandateTestbed(CHANNELS[channel]);
    });
    after(() => testbed?.close());

    const carriers: Readonly<Record<string, (mandate: string) => object>> = {
      'the header of HTTP': (mandate) => ({ headers: { 'agent-authorization': mandate } }),
      'the input, as text': (mandate) => ({ inside: mandate }),
      'the input, as an object': (mandate) => ({ inside: objectOf(mandate) }),
      'both, in two spellings': (mandate) => ({
        headers: { 'agent-authorization': mandate },
        inside: Object.fromEntries(Object.entries(objectOf(mandate) as object).reverse()),
      }),
      ...(channel === 'mcp'
        ? { _meta: (mandate: string) => ({ meta: { 'agent-commerce/authorization': objectOf(mandate) } }) }
        : {}),
      'the header, beside an empty member': (mandate) => ({ headers: { 'agent-authorization': mandate }, inside: '' }),
    };
    for (const [carrier, put] of Object.entries(carriers))
      it(`in ${carrier}`, async () => {
        const asked = await testbed.challenged();
        const proof = await testbed.proofFor(asked);
        const mandate = testbed.mandateFor(asked, testbed.pays()).header;
        const bought = await testbed.send({ resourceId: TOOL, input: INPUT, proof, ...put(mandate) });
        assert.equal(bought.code, undefined, bought.raw);
      });
  });

describe('large headers', () => {
  let testbed: MandateTestbed;
  before(async () => {
    testbed = await openMandateTestbed(CHANNELS.http);
  });
  after(() => testbed?.close());

  it('a mandate of 12 KiB beside a payment of 4 KiB comes through to the verifier, and one byte more is too large', async () => {
    const asked = await testbed.challenged();
    const payload = JSON.parse(Buffer.from(await testbed.proofFor(asked), 'base64').toString()) as object;
    const extensions = { filler: { info: { text: 'x'.repeat(2_300) } } };
    const proof = Buffer.from(JSON.stringify({ ...payload, extensions })).toString('base64');
    assert.ok(proof.length > 4_000, `${proof.length}`);
    for (const [bytes, reason] of [
      [12_288, 'envelope_json'],
      [12_289, 'envelope_too_large'],
    ] as const) {
      const mandate = 'A'.repeat(bytes);
      const refused = await testbed.send({ resourceId: TOOL, input: INPUT, proof, mandate });
      assert.deepEqual(
        [refused.code, refused.body.details?.['reason']],
        ['AUTHORIZATION_INVALID', reason],
        refused.raw,
      );
    }
    const mandate = testbed.mandateFor(asked, testbed.pays()).header;
    const bought = await testbed.send({ resourceId: TOOL, input: INPUT, proof, mandate });
    assert.equal(bought.code, undefined, bought.raw);
  });
});
