import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { answerJson, serveHttp } from '../../spec/support/http-server.ts';
import { meterRpc } from './rpc-meter.ts';

const CALL = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}';

describe('the meter of calls to a node', () => {
  it('passes calls and answers on, and counts each call of a batch', async () => {
    await using ends = new AsyncDisposableStack();
    const node = await serveHttp(({ response, body }) => answerJson(response, 200, { read: body.length }));
    ends.defer(() => node.stop());
    const meter = await meterRpc(node.url);
    ends.defer(() => meter.stop());
    const batch = `[${CALL},${CALL}]`;
    const answer = await fetch(meter.url, { method: 'POST', headers: { connection: 'close' }, body: batch });
    assert.deepEqual(await answer.json(), { read: batch.length });
    assert.equal(meter.calls(), 2);
  });

  it('counts a name that lies on the border of two chunks', async () => {
    await using ends = new AsyncDisposableStack();
    const node = await serveHttp(({ response }) => answerJson(response, 200, {}));
    ends.defer(() => node.stop());
    const meter = await meterRpc(node.url);
    ends.defer(() => meter.stop());
    const socket = connect({ port: Number(new URL(meter.url).port), host: '127.0.0.1', noDelay: true });
    const text = `POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: ${CALL.length}\r\n\r\n${CALL}`;
    const border = text.indexOf('"method":') + 4;
    socket.write(text.slice(0, border), () => setImmediate(() => socket.write(text.slice(border))));
    await once(socket.resume(), 'close');
    assert.equal(meter.calls(), 1);
  });
});
