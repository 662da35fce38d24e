import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { classifyInboundRequest } from '@modelcontextprotocol/server';
import fc from 'fast-check';
import { readMessage } from '../../../src/adapters/mcp/parse-request.ts';
import { DECIDED, type Difference, type Facts, LATER, type Verdict } from './classifier-differences.ts';
import { META_CLIENT, META_VERSION, type Post, posts } from './classifier-posts.ts';

const RUNS = 10_000;
const DIFFERENCES: readonly Difference[] = [...LATER, ...DECIDED];

type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function factsOf({ body, headers }: Post): Facts {
  const message = isObject(body) ? body : {};
  const params = isObject(message['params']) ? message['params'] : {};
  const meta = isObject(params['_meta']) ? params['_meta'] : {};
  return {
    method: message['method'],
    hasId: 'id' in message,
    params: message['params'],
    hasClaim: META_VERSION in meta,
    claim: meta[META_VERSION],
    toolName: params['name'],
    version: headers['mcp-protocol-version'],
    methodHeader: headers['mcp-method'],
    nameHeader: headers['mcp-name'],
  };
}

function sdkVerdict({ body, headers }: Post): Verdict {
  const { version, methodHeader, nameHeader } = factsOf({ body, headers });
  const outcome = classifyInboundRequest({
    httpMethod: 'POST',
    body,
    ...(version === undefined ? {} : { protocolVersionHeader: version }),
    ...(methodHeader === undefined ? {} : { mcpMethodHeader: methodHeader }),
    ...(nameHeader === undefined ? {} : { mcpNameHeader: nameHeader }),
  });
  if (outcome.kind === 'reject') return `${outcome.httpStatus} ${outcome.code}`;
  if (outcome.kind === 'modern') return outcome.messageKind === 'request' ? 'modern' : 'notification';
  const { reason } = outcome;
  return reason === 'batch' || reason === 'response' || reason === 'notification' ? reason : 'legacy';
}

function gatewayVerdict({ body, headers }: Post): Verdict {
  const reading = readMessage(Buffer.from(JSON.stringify(body)), (name) => {
    const value = headers[name];
    return value === undefined ? { kind: 'absent' } : { kind: 'single', value };
  });
  if (reading.kind === 'refused') return `${reading.status} ${reading.error.code}`;
  return reading.kind === 'request' ? reading.request.era : 'notification';
}

/** The same POST without the members that the gateway ignores and the SDK refuses. */
function withoutIgnored({ body, headers }: Post): Post {
  if (!isObject(body) || !isObject(body['params']) || !('_meta' in body['params'])) return { body, headers };
  const { _meta, ...params } = body['params'];
  if (!isObject(_meta)) return { body: { ...body, params }, headers };
  const { [META_CLIENT]: client, ...meta } = _meta;
  const read = client === undefined || isObject(client) ? _meta : meta;
  return { body: { ...body, params: { ...params, _meta: read } }, headers };
}

const explains = ({ sdk, gateway, when }: Difference, [theirs, ours]: readonly [Verdict, Verdict], facts: Facts) =>
  sdk.includes(theirs) && gateway.includes(ours) && when(facts);

describe('the checks of a message, beside the classifier of the official SDK', () => {
  it(`agree on ${RUNS} requests except for the differences below`, () => {
    fc.assert(
      fc.property(posts, (post) => {
        const facts = factsOf(post);
        const [theirs, ours] = [sdkVerdict(withoutIgnored(post)), gatewayVerdict(post)];
        const named = DIFFERENCES.some((difference) => explains(difference, [theirs, ours], facts));
        assert.ok(theirs === ours || named, `SDK ${theirs}, gateway ${ours}`);
        const missed = LATER.find(({ sdk, when }) => theirs === ours && sdk.includes(theirs) && when(facts));
        assert.equal(missed?.rule, undefined);
      }),
      { numRuns: RUNS },
    );
  });

  for (const difference of DIFFERENCES)
    it(difference.rule, () => {
      const { example } = difference;
      const verdicts = [sdkVerdict(example), gatewayVerdict(example)] as const;
      assert.ok(explains(difference, verdicts, factsOf(example)), `SDK ${verdicts[0]}, gateway ${verdicts[1]}`);
    });

  for (const [what, meta] of Object.entries({
    'a _meta that is no object': null,
    'a clientInfo of any type': {
      [META_VERSION]: '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
      [META_CLIENT]: null,
    },
  }))
    it(`ignore ${what}, which the SDK refuses`, () => {
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } };
      const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
      const post: Post = { body, headers: meta === null ? {} : modern };
      assert.match(sdkVerdict(post), /^400 /);
      assert.equal(gatewayVerdict(post), sdkVerdict(withoutIgnored(post)));
    });
});
