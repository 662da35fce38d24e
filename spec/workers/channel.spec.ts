import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { answerCommands, type CommandHandlers, createAsker, WorkerGone } from '../../src/workers/channel.ts';
import { channelPair } from './channel-pair.ts';

const HANDLERS: Partial<CommandHandlers> = {
  ping: () => null,
  metrics: async () => 'text',
  prepare: () => {
    throw new Error('two resources have one address');
  },
};

describe('commands between processes', () => {
  it('are answered each with its own answer, whichever is ready first', async () => {
    const [primary, worker] = channelPair();
    const asker = createAsker(primary);
    const slow = Promise.withResolvers<string>();
    answerCommands(worker, { ...HANDLERS, metrics: () => slow.promise } as CommandHandlers);
    const metrics = asker.ask('metrics', null);
    assert.equal(await asker.ask('ping', null), null);
    slow.resolve('acg_workers 2');
    assert.equal(await metrics, 'acg_workers 2');
  });

  it('fail with the message of what their handler threw', async () => {
    const [primary, worker] = channelPair();
    answerCommands(worker, HANDLERS as CommandHandlers);
    const config = { number: 1, document: {} as never, fromFile: new Set<string>() };
    await assert.rejects(createAsker(primary).ask('prepare', config), { message: 'two resources have one address' });
  });

  it('fail once the worker is gone, those that wait and those that come', async () => {
    const [primary] = channelPair();
    const asker = createAsker(primary);
    const waiting = asker.ask('ping', null);
    asker.gone();
    await assert.rejects(waiting, WorkerGone);
    await assert.rejects(asker.ask('ping', null), WorkerGone);
  });
});
