import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkDocument, type DocumentFault, hasRawHtml } from '../../../src/adapters/acp/backend-document.ts';
import type { Operation } from '../../../src/checkouts/operations.ts';
import { isObject, type JsonObject } from '../../../src/json/json.ts';
import { openCheckouts } from '../../support/acp/checkouts.ts';
import { EDITS, type Fault } from '../../support/acp/faults.ts';
import { completeWith, withBackend, write } from './with-backend.ts';

const checkouts = openCheckouts({ dedupe: false, siteUrl: 'https://shop.example' });
const CREATED = checkouts.act(
  'createCheckoutSession',
  undefined,
  { line_items: [{ id: 'a' }], currency: 'usd', capabilities: {} },
  undefined,
).document;
const ID = String(CREATED['id']);
const COMPLETED = checkouts.act(
  'completeCheckoutSession',
  ID,
  JSON.parse(completeWith()) as JsonObject,
  undefined,
).document;
const JSON_TYPE = { 'content-type': 'application/json' };

function faultIn(
  document: JsonObject | string | Uint8Array,
  operation: Operation = 'updateCheckoutSession',
  headers: Readonly<Record<string, string | readonly string[]>> = JSON_TYPE,
): DocumentFault | undefined {
  const body =
    document instanceof Uint8Array
      ? document
      : Buffer.from(typeof document === 'string' ? document : JSON.stringify(document));
  const checked = checkDocument({ operation, sessionId: ID, strictSemantics: false, headers, body });
  return checked.kind === 'invalid' ? checked.fault : undefined;
}

function contradictionsIn(document: JsonObject, operation: Operation = 'updateCheckoutSession'): readonly string[] {
  const body = Buffer.from(JSON.stringify(document));
  const checked = checkDocument({ operation, sessionId: ID, strictSemantics: false, headers: JSON_TYPE, body });
  assert.ok(checked.kind === 'valid', JSON.stringify(checked));
  return checked.contradictions;
}

describe('a document of the backend', () => {
  it('is application/json, with or without parameters', () => {
    for (const type of ['application/json', 'Application/JSON; charset=utf-8', 'application/json ;x=y'])
      assert.equal(faultIn(CREATED, 'updateCheckoutSession', { 'content-type': type }), undefined, type);
    for (const type of ['text/html', 'application/problem+json', 'application/jsonp', ''])
      assert.equal(faultIn(CREATED, 'updateCheckoutSession', { 'content-type': type })?.reason, 'media_type', type);
    assert.equal(faultIn(CREATED, 'updateCheckoutSession', {})?.reason, 'media_type');
    const twice = { 'content-type': ['application/json', 'application/json'] };
    assert.equal(faultIn(CREATED, 'updateCheckoutSession', twice)?.reason, 'media_type');
  });

  it('is not encoded', () => {
    const gzip = { ...JSON_TYPE, 'content-encoding': 'gzip' };
    assert.equal(faultIn(CREATED, 'updateCheckoutSession', gzip)?.reason, 'content_encoding');
    for (const coding of ['identity', 'Identity']) {
      const identity = { ...JSON_TYPE, 'content-encoding': coding };
      assert.equal(faultIn(CREATED, 'updateCheckoutSession', identity), undefined);
    }
  });

  it('is strict JSON, which every parser reads alike', () => {
    const text = JSON.stringify(CREATED);
    const rows: readonly (readonly [string | Uint8Array, string])[] = [
      ['', 'malformed_json'],
      [text.slice(1), 'malformed_json'],
      [`\ufeff${text}`, 'malformed_json'],
      [Buffer.from(text, 'utf16le'), 'malformed_json'],
      [text.replace('{', '{"status":"canceled",'), 'duplicate_key'],
      [text.replace('"amount":1500', '"amount":9007199254740993'), 'number_out_of_range'],
    ];
    for (const [body, keyword] of rows)
      assert.deepEqual(faultIn(body), { reason: 'json', pointer: '$', keyword }, keyword);
  });

  it('matches the schema, and the fault names the path and the keyword, never a value', () => {
    const totals = [{ type: 'everything', display_text: 'x', amount: 1 }];
    const fault = faultIn({ ...CREATED, totals });
    assert.deepEqual(fault, { reason: 'schema', pointer: '$.totals[0].type', keyword: 'enum' });
    for (const document of ['[]', 'null', '"x"']) assert.equal(faultIn(document)?.reason, 'schema', document);
  });

  it('a fault is named in names of the schema alone: other names may be a secret of the backend', () => {
    const pointerOf = (document: object): unknown => faultIn({ ...CREATED, ...document })?.pointer;
    assert.equal(pointerOf({ sk_live_secret: 1 }), '$');
    assert.equal(pointerOf({ buyer: { email: 'a@b.example', sk_live_secret: 1 } }), '$.buyer');
    assert.equal(
      pointerOf({ links: [{ type: 'support', url: 'https://a.example', sk_live_secret: 1 }] }),
      '$.links[0]',
    );
    const coupon = { id: 'c', name: 'c', metadata: { sk_live_secret: 1 } };
    assert.equal(
      pointerOf({ discounts: { applied: [{ id: 'd', coupon, amount: 1 }] } }),
      '$.discounts.applied[0].coupon.metadata',
    );
  });

  it('has an order when it is completed by a complete, and needs none otherwise', () => {
    assert.equal(faultIn(COMPLETED, 'completeCheckoutSession'), undefined);
    const { order: _, ...without } = COMPLETED;
    assert.equal(faultIn(without, 'completeCheckoutSession')?.reason, 'schema');
    assert.equal(faultIn(without, 'getCheckoutSession'), undefined);
    assert.equal(faultIn(CREATED, 'completeCheckoutSession'), undefined);
  });

  it('with an empty list of extensions is refused, as the schema has it, under a name of its own', () => {
    const fault = faultIn(EDITS['empty-extensions'](CREATED));
    assert.equal(fault?.reason, 'empty_extensions');
    const both = { ...EDITS['empty-extensions'](CREATED), surprise: 1 };
    assert.equal(faultIn(both)?.reason, 'schema');
  });

  it('has no raw HTML in Markdown: in messages and in disclosures', () => {
    assert.deepEqual(faultIn(EDITS['raw-html'](CREATED)), {
      reason: 'markdown',
      pointer: '$.messages[0].content',
      keyword: undefined,
    });
    const disclosures = [{ type: 'disclaimer', content_type: 'markdown', content: '<b>' }];
    const [line] = Array.isArray(CREATED['line_items']) ? CREATED['line_items'] : [];
    assert.ok(isObject(line));
    const disclosed = { ...CREATED, line_items: [line, { ...line, disclosures }] };
    assert.equal(faultIn(disclosed)?.pointer, '$.line_items[1].disclosures[0].content');
  });

  it('may have angle brackets in plain text', () => {
    const messages = [{ type: 'info', content_type: 'plain', content: '<b>bold</b>' }];
    assert.equal(faultIn({ ...CREATED, messages }), undefined);
  });
});

describe('a document that contradicts itself or the call', () => {
  it('is found', () => {
    assert.deepEqual(contradictionsIn(CREATED), []);
    assert.deepEqual(contradictionsIn(COMPLETED, 'completeCheckoutSession'), []);
    assert.deepEqual(contradictionsIn({ ...CREATED, id: 'other' }), ['session_id']);
    assert.deepEqual(contradictionsIn({ ...CREATED, protocol: { version: '2026-01-30' } }), ['version']);
    assert.deepEqual(contradictionsIn({ ...CREATED, status: 'authentication_required' }), ['authentication']);
    assert.deepEqual(contradictionsIn(CREATED, 'cancelCheckoutSession'), ['not_canceled']);
    const order = { id: 'o', checkout_session_id: 'other', permalink_url: 'https://shop.example/o' };
    assert.deepEqual(contradictionsIn({ ...COMPLETED, order }, 'completeCheckoutSession'), ['order_session_id']);
  });

  const wrongId: Fault = { kind: 'document', edit: EDITS['wrong-id'] };
  it('is reported and passed on', () =>
    withBackend(async ({ backend, open, session, contradictions, invalid }) => {
      const sessionId = await session();
      backend.misbehave(wrongId);
      assert.equal((await write(open({ operation: 'updateCheckoutSession', sessionId }))).kind, 'answer');
      assert.deepEqual(contradictions, [
        { operation: 'updateCheckoutSession', requestId: 'acp_1', callId: 'call_1', contradiction: 'session_id' },
      ]);
      assert.deepEqual(invalid, []);
    }));

  it('is reported under the operation that the backend was asked for', () =>
    withBackend(async ({ backend, open, session, contradictions }) => {
      const sessionId = await session();
      backend.misbehave(wrongId);
      await open({ operation: 'completeCheckoutSession', sessionId }).readBack?.();
      assert.deepEqual(contradictions, [
        { operation: 'getCheckoutSession', requestId: 'acp_1', callId: 'call_1', contradiction: 'session_id' },
      ]);
    }));

  it('is refused with strictSemantics', () =>
    withBackend(
      async ({ backend, open, session, contradictions, invalid }) => {
        const sessionId = await session();
        backend.misbehave(wrongId);
        const end = await write(open({ operation: 'updateCheckoutSession', sessionId }));
        assert.ok(end.kind === 'unknown');
        assert.equal(end.why, 'invalid_document');
        const fault = { reason: 'contradiction', pointer: '$.id', keyword: 'session_id' };
        assert.deepEqual(invalid, [
          { operation: 'updateCheckoutSession', requestId: 'acp_1', callId: 'call_1', ...fault },
        ]);
        assert.deepEqual(contradictions, []);
      },
      { strictSemantics: true },
    ));
});

/** Markdown without raw HTML, by what makes it so. */
const LEGAL: Readonly<Record<string, string>> = {
  'plain text': 'Ships in *two* days.\n\n- one\n- two',
  'a comparison': '1 < 2 and a <- b, x <3',
  'an autolink': 'See <https://shop.example/a?b=c#d>.',
  'an autolink of a mail address': 'Write to <help+shop@mail.shop.example>.',
  'inline code': 'Type `<b>` and ``<i>`</i>``.',
  'two code spans in a line': '`<b>` and `</b>`',
  'code that ends with a backslash': '`<b>\\`',
  'fenced code': 'Before\n\n```html\n<b>bold</b>\n```\n\nafter',
  'tildes as a fence': '~~~ `x`\n<b>\n~~~',
  'a fence of four around one of three': '````\n```\n<b>\n````',
  'a fence that is never closed': '```\n<b>',
  'an indented fence': '  ```\n<b>\n   ```\ntext',
  'line ends of Windows': '```\r\n<b>\r\n```\r\ntext',
  'fenced code behind a list': '- one\n- two\n\n```\n<b>\n```',
};

/** Raw HTML, by where it hides. */
const RAW: Readonly<Record<string, string>> = {
  'an element': 'Hello <b>you</b>',
  'a closing tag': 'Hello </b>',
  'a comment': 'Hello <!-- you -->',
  'an instruction': 'Hello <?php ?>',
  'a tag that never ends': 'Hello <img src=x onerror=alert(1)',
  'no autolink, for a space in it': '<https://shop.example/ onclick=x>',
  'no autolink, for a scheme of one letter': '<a:b>',
  'no autolink, for the end of the text': '<https://shop.example',
  'a code span that is never closed': '`<b>',
  'a code span closed by a run of another length': '``<b>`',
  'behind a code span': '`code` <b>',
  'between two code spans': '`a`<b>`c`',
  'a span that a blank line ends': '`a\n\n<b>`',
  'a span from the line before that ends here': '`a\n`<b>`',
  'an escaped backtick': '\\`<b>`',
  'after the fence': '```\n<b>\n```\n<i>',
  'a fence closed by a longer one': '```\na\n`````\n<b>',
  'not closed by white space of another kind': '```\n```\u00a0\n```\n<b>',
  'a fence whose info string has a backtick': '``` a`b\n<b>',
  'four spaces are no fence': '    ```\n<b>',
  'a tab is no fence': '\t```\n<b>',
  'behind a fence in an item, which ends with the item': '- ```\n  ```\n  <b>',
  'a fence in an item that the next line is not in': '- a\n\n  ```\n<b>',
  'a fence in an inner item closed by the outer one': '- - a\n\n    ```\n  ```\n<b>',
  'behind a list, in a fence that an unindented one closes': '- a\n\nb\n\n  ```\n```\n<b>',
  'a fence in a quotation that ends': '> ```\n<b>',
  'in a quotation': '> <b>',
};

describe('Markdown of a backend', () => {
  it('may have code, autolinks and comparisons', () => {
    for (const [what, text] of Object.entries(LEGAL)) assert.equal(hasRawHtml(text), false, what);
  });
  it('has raw HTML wherever a tag is not certainly code', () => {
    for (const [what, text] of Object.entries(RAW)) assert.equal(hasRawHtml(text), true, what);
  });

  const SIZE = 262_144;
  const hostile: Readonly<Record<string, string>> = {
    'opening angle brackets': '<'.repeat(SIZE),
    'angle brackets and dots': '<.'.repeat(SIZE / 2),
    'backtick runs of growing length': Array.from({ length: 700 }, (_, n) => '`'.repeat(n + 1)).join(' '),
    'single backticks': '` '.repeat(SIZE / 2),
    'one run of backticks': '`'.repeat(SIZE),
    'a fence that nearly closes on every line': `\`\`\`\n${'``` x\n'.repeat(SIZE / 6)}`,
    'spaces behind a fence': `\`\`\`\n\`\`\`${' '.repeat(SIZE)}x`,
    'list markers': `${'1. '.repeat(SIZE / 3)}`,
    'digits of a list': '1'.repeat(SIZE),
    'mail addresses that fail': `<1@${'a-'.repeat(SIZE / 2)}`,
    'labels of a mail address': `<1@${'a.'.repeat(SIZE / 2)}`,
    'autolinks that fail': '<1ab:'.repeat(SIZE / 5),
    'blank lines': '\n'.repeat(SIZE),
  };
  it('costs linear time, whatever it is', () => {
    for (const [what, text] of Object.entries(hostile)) {
      // Time of this process alone: the machine may be busy.
      const since = process.cpuUsage();
      hasRawHtml(text);
      const { user, system } = process.cpuUsage(since);
      // Quadratic time would be some minutes.
      assert.ok(user + system < 2_000_000, `${what}: ${user + system} µs`);
    }
  });
});
