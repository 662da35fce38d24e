import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { type Client, encodeAbiParameters, encodeEventTopics, numberToHex, parseAbiParameters } from 'viem';
import { getCode, getLogs, getTransactionCount } from 'viem/actions';
import type { Json } from '../../../../src/json/json.ts';
import { createChain, findPayment } from '../../../../src/payments/x402/chain/chain.ts';
import { OversizedAnswer } from '../../../../src/payments/x402/chain/http-json.ts';
import {
  askAsset,
  clientOver,
  createRpc,
  FIRST_NODE_AGAIN_MS,
  inOrder,
  OversizedRequest,
  type Rpc,
  RpcRefusal,
  readHead,
  readReceipt,
  UndecodableAnswer,
  UnreadableAnswer,
} from '../../../../src/payments/x402/chain/node.ts';
import { ASSET_ABI } from '../../../../src/payments/x402/evm/eip3009.ts';
import { answerJson, type HttpServer, resetConnection, serveHttp } from '../../../support/http-server.ts';
import { freshAddress } from '../signing.ts';

type Hex = `0x${string}`;
const [asset, from, payTo] = [freshAddress(), freshAddress(), freshAddress()];
const nonce: Hex = `0x${'a1'.repeat(32)}`;
const transactionHash: Hex = `0x${'c3'.repeat(32)}`;

const LOG = {
  address: asset,
  topics: encodeEventTopics({
    abi: ASSET_ABI,
    eventName: 'AuthorizationUsed',
    args: { authorizer: from, nonce },
  }) as readonly Hex[],
  data: '0x',
  logIndex: '0x0',
  transactionHash,
  blockNumber: '0x7',
};
const RECEIPT = { transactionHash, blockNumber: '0x7', status: '0x1', logs: [LOG] };
const BLOCK = { hash: transactionHash, number: '0x7', timestamp: '0x64' };

const answering = (answer: Json): Client => clientOver(async () => answer);

/** A question, a good answer, and members of it that are odd. */
const QUESTIONS: readonly (readonly [
  what: string,
  ask: (client: Client) => Promise<unknown>,
  good: Json,
  odd: readonly Json[],
])[] = [
  [
    'block',
    (client) => readHead(client),
    BLOCK,
    [
      null,
      { ...BLOCK, number: [] },
      { ...BLOCK, number: '7' },
      { ...BLOCK, timestamp: `0x${'f'.repeat(64)}` },
      { ...BLOCK, hash: null },
      { ...BLOCK, baseFeePerGas: true },
    ],
  ],
  [
    'receipt',
    (client) => readReceipt(client, transactionHash),
    RECEIPT,
    [
      { ...RECEIPT, status: '0x2' },
      { ...RECEIPT, status: 1 },
      { ...RECEIPT, blockNumber: '0x' },
      { ...RECEIPT, transactionHash: `${transactionHash}00` },
      { ...RECEIPT, logs: null },
      { ...RECEIPT, logs: { length: 0 } },
      { ...RECEIPT, logs: [null] },
      { ...RECEIPT, logs: [{ ...LOG, address: '0x12' }] },
      { ...RECEIPT, logs: [{ ...LOG, topics: [['0x']] }] },
      { ...RECEIPT, logs: [{ ...LOG, topics: ['0x01'] }] },
      { ...RECEIPT, logs: [{ ...LOG, data: 'no hex' }] },
      { ...RECEIPT, logs: [{ ...LOG, logIndex: null }] },
    ],
  ],
  [
    'list of logs',
    (client) => getLogs(client, { address: asset }),
    [LOG],
    [null, {}, [[]], [{ ...LOG, blockNumber: null }], [{ ...LOG, transactionHash: '0x1' }]],
  ],
  ['count', (client) => getTransactionCount(client, { address: asset }), '0x1', [null, '0x', `0x${'1'.repeat(14)}`]],
  ['code', (client) => getCode(client, { address: asset }), '0x60', [null, [], '60', '0xzz']],
  [
    'view of the asset',
    (client) => askAsset(client, asset, 'balanceOf', [from]),
    numberToHex(7n, { size: 32 }),
    [null, '0x', '0x07', [], 'much'],
  ],
];
/** What is no answer to any question. */
const NONSENSE: readonly Json[] = [true, 7, '', 'https://node.example/key', {}, [true]];

describe('an answer of the chain node', () => {
  for (const [what, ask, good, odd] of QUESTIONS) {
    it(`that is a good ${what} is taken`, async () => {
      await ask(answering(good));
    });

    it(`that is no ${what} is unreadable, and is not repeated in the message`, async () => {
      for (const answer of [...odd, ...NONSENSE])
        await assert.rejects(
          ask(answering(answer)),
          (error: unknown) => {
            assert.ok(error instanceof UnreadableAnswer, String(error));
            assert.match(error.message, /^the chain node answered with no readable \w+$/);
            return error.cause === undefined;
          },
          JSON.stringify(answer),
        );
    });
  }

  it('of another type is told from one that is no answer', async () => {
    await assert.rejects(askAsset(answering('0x'), asset, 'name', []), UndecodableAnswer);
    await assert.rejects(
      askAsset(answering(null), asset, 'name', []),
      (error: unknown) => !(error instanceof UndecodableAnswer),
    );
  });

  it('in upper case is the same one', async () => {
    const log = { ...LOG, topics: LOG.topics.map((topic) => `0x${topic.slice(2).toUpperCase()}`) };
    const receipt = await readReceipt(answering({ ...RECEIPT, logs: [log] }), transactionHash);
    assert.ok(receipt !== undefined);
    assert.equal(findPayment(receipt, { asset, from, nonce, payTo, value: '7' }), 'elsewhere');
  });

  it('cannot say itself what its logs mean', async () => {
    const [topic] = encodeEventTopics({ abi: ASSET_ABI, eventName: 'Transfer' });
    const topics = [topic, ...[freshAddress(), freshAddress()].map((one) => `0x${one.slice(2).padStart(64, '0')}`)];
    const data = encodeAbiParameters(parseAbiParameters('uint256'), [7n]);
    const claimed = { eventName: 'Transfer', args: { from, to: payTo, value: 7n as unknown as number } };
    const logs = [LOG, { ...LOG, topics, data, logIndex: '0x1', ...claimed }];
    const receipt = await readReceipt(answering({ ...RECEIPT, logs }), transactionHash);
    assert.ok(receipt !== undefined);
    assert.equal(findPayment(receipt, { asset, from, nonce, payTo, value: '7' }), 'elsewhere');
  });

  it('about logs that were not asked for proves no cancellation', async () => {
    const [cancelled = '0x'] = encodeEventTopics({ abi: ASSET_ABI, eventName: 'AuthorizationCanceled' });
    const another = { ...LOG, topics: [cancelled, LOG.topics[1] ?? '0x', `0x${'b2'.repeat(32)}`] };
    const answers: Readonly<Record<string, Json>> = {
      eth_getBlockByNumber: BLOCK,
      eth_call: numberToHex(1n, { size: 32 }),
      eth_getLogs: [another],
    };
    const rpc: Rpc = { call: async (method) => answers[method] ?? null, close: async () => undefined };
    const query = { asset, from, nonce, payTo, value: '7', validBefore: 1_000, since: 0 };
    assert.equal((await createChain(rpc).readEvidence(query)).kind, 'unknown');
  });
});

describe('a call to the chain node', () => {
  /** A node at an address with a key, and how often it was asked. */
  const asking = async (
    respond: Parameters<typeof serveHttp>[0],
    check: (client: Client, server: HttpServer) => Promise<void>,
  ): Promise<number> => {
    let asked = 0;
    const server = await serveHttp((request) => {
      asked += 1;
      return respond(request);
    });
    const rpc = createRpc(`${server.url}/v2/secret-key`);
    try {
      await check(clientOver(rpc.call), server);
    } finally {
      await rpc.close();
      await server.stop();
    }
    return asked;
  };
  const refusal = (code: number, message: string) => ({ jsonrpc: '2.0', id: 1, error: { code, message } });
  const failures: readonly (readonly [
    what: string,
    respond: Parameters<typeof serveHttp>[0],
    kind: abstract new (...args: never[]) => Error,
  ])[] = [
    ['a limit', ({ response }) => answerJson(response, 429, refusal(-32_005, 'slow down')), RpcRefusal],
    ['an inner error', ({ response }) => answerJson(response, 200, refusal(-32_603, 'oops')), RpcRefusal],
    ['no node', ({ response }) => void response.writeHead(503, { 'retry-after': '0' }).end('<html>'), Error],
    ['a broken connection', ({ response }) => resetConnection(response), Error],
    ['a value twice', ({ response }) => void response.end('{"id":1,"result":"0x","result":"0x1"}'), Error],
    [
      'more than a MiB',
      ({ response }) => answerJson(response, 200, { id: 1, result: `0x${'0'.repeat(1_048_576)}` }),
      OversizedAnswer,
    ],
  ];
  for (const [what, respond, kind] of failures)
    it(`that meets ${what} is made once, and its error tells neither address nor library`, async () => {
      const asked = await asking(respond, (client, { url }) =>
        assert.rejects(getCode(client, { address: asset }), (error: unknown) => {
          assert.ok(error instanceof kind, String(error));
          const text = [error.stack, error.message, String(error.cause)].join();
          assert.doesNotMatch(error.message, /viem|0x/i);
          return !text.includes('secret-key') && !text.includes(new URL(url).host);
        }),
      );
      assert.equal(asked, 1);
    });

  it('takes an answer of almost a MiB', async () => {
    const code = `0x${'0'.repeat(1_048_000)}`;
    await asking(
      ({ response }) => answerJson(response, 200, { jsonrpc: '2.0', id: 1, result: code }),
      async (client) => assert.equal(await getCode(client, { address: asset }), code),
    );
  });
});

const refused = (code: number, message: string, reverted = false, status = 200) =>
  new RpcRefusal('eth_call', code, message, reverted, status);

describe('several nodes of a chain', () => {
  const asked: string[] = [];
  let clock = 0;
  /** A node that fails with these errors, and then answers with its name. */
  const node = (name: string, ...errors: readonly Error[]): Rpc => {
    const left = [...errors];
    return {
      async call(method) {
        asked.push(`${name} ${method}`);
        const error = left.shift();
        if (error !== undefined) throw error;
        return name;
      },
      close: async () => undefined,
    };
  };
  const order = (nodes: readonly Rpc[], compare: (node: Rpc) => Promise<void> = async () => undefined): Rpc => {
    asked.length = 0;
    return inOrder(nodes, { compare, now: () => clock });
  };
  const down = new Error('ECONNRESET');

  for (const [what, error] of [
    ['a broken connection', down],
    ['a limit', refused(-32_005, 'rate limited')],
    ['a fault of the node', refused(-32_603, 'internal error')],
    ['a refusal under status 502', refused(-32_000, 'no upstream', false, 502)],
  ] as const)
    it(`a reading is tried again after ${what}`, async () => {
      assert.equal(await order([node('a', error)]).call('eth_call', []), 'a');
      assert.equal(asked.length, 2);
    });

  for (const [what, error] of [
    ['a revert', refused(3, 'execution reverted', true)],
    ['a method that the node lacks', refused(-32_601, 'method not found')],
    ['an answer that is too large', new OversizedAnswer(1)],
    ['parameters that one node refuses', refused(-32_602, 'invalid params')],
  ] as const)
    it(`${what} is an answer, and no reason to ask again`, async () => {
      await assert.rejects(order([node('a', error)]).call('eth_call', []), error);
      assert.equal(asked.length, 1);
    });

  it('gives up after five tries, or where the next one would come after the deadline', async () => {
    const errors = Array.from({ length: 9 }, () => down);
    await assert.rejects(order([node('a', ...errors)]).call('eth_call', []), down);
    assert.equal(asked.length, 5);
    await assert.rejects(order([node('a', ...errors)]).call('eth_call', [], 40), down);
    assert.equal(asked.length, 1);
  });

  it('sends a transaction once, to the node that answered last', async () => {
    const rpc = order([node('a', down), node('b')]);
    assert.equal(await rpc.call('eth_getTransactionCount', []), 'b');
    assert.equal(await rpc.call('eth_sendRawTransaction', []), 'b');
    await assert.rejects(order([node('a', down), node('b')]).call('eth_sendRawTransaction', []), down);
    assert.deepEqual(asked, ['a eth_sendRawTransaction']);
  });

  it('asks the next node after any refusal that is no result, and the first one again later', async () => {
    const rpc = order([node('a', refused(-32_600, 'must be authenticated')), node('b')]);
    assert.equal(await rpc.call('eth_call', []), 'b');
    clock += FIRST_NODE_AGAIN_MS - 1;
    assert.equal(await rpc.call('eth_call', []), 'b');
    clock += 1;
    assert.equal(await rpc.call('eth_call', []), 'a');
  });

  it('leaves a node that failed, also when an earlier call gets its answer there', async () => {
    const earlier = Promise.withResolvers<Json>();
    const first = node('a', down);
    const slow: Rpc = {
      ...first,
      call: (method, ...more) => (method === 'early' ? earlier.promise : first.call(method, ...more)),
    };
    const rpc = order([slow, node('b')]);
    const early = rpc.call('early', []);
    assert.equal(await rpc.call('eth_call', []), 'b');
    earlier.resolve('a');
    assert.equal(await early, 'a');
    assert.equal(await rpc.call('eth_call', []), 'b');
  });

  it('counts no reading of a node that has not been compared', async () => {
    const [first, stranger] = [node('a', down, down, down, down, down), node('b')];
    const rpc = order([first, stranger], async (one) => {
      if (one === stranger) throw new Error('it is of another chain');
    });
    await assert.rejects(rpc.call('eth_call', []));
    assert.ok(!asked.some((line) => line.startsWith('b')));
  });
});

describe('JSON-RPC to a chain node', () => {
  let server: Server;
  let rpc: Rpc;
  let answer = { status: 200, body: '' };
  before(async () => {
    server = createServer((req, res) => {
      req.resume().on('end', () => res.writeHead(answer.status).end(answer.body));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    rpc = createRpc(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  after(async () => {
    await rpc.close();
    server.close();
  });

  it('tells a request that is too large from a node that does not answer', async () => {
    answer = { status: 413, body: '<html>413 Request Entity Too Large</html>' };
    await assert.rejects(rpc.call('eth_call', []), OversizedRequest);
    answer = { status: 502, body: '<html>502 Bad Gateway</html>' };
    await assert.rejects(rpc.call('eth_call', []), { name: 'Error', message: 'eth_call: no JSON-RPC answer (502)' });
  });

  it('takes the words of a node over the status of its answer', async () => {
    answer = { status: 413, body: '{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"limit exceeded"}}' };
    await assert.rejects(rpc.call('eth_call', []), RpcRefusal);
  });
});
