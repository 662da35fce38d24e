import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createRpc, OversizedRequest, type Rpc, RpcRefusal } from '../../../../src/payments/x402/chain/rpc.ts';

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
