import type { ChannelEnd } from '../../src/workers/channel.ts';

/** Two ends of one channel; messages arrive in a later turn, as those of processes do. */
export function channelPair(): readonly [ChannelEnd, ChannelEnd] {
  const listeners: [((message: unknown) => void)[], ((message: unknown) => void)[]] = [[], []];
  const end = (own: 0 | 1): ChannelEnd => ({
    send: (message) =>
      setImmediate(() => {
        for (const listener of listeners[own === 0 ? 1 : 0]) listener(structuredClone(message));
      }),
    onMessage: (listener) => void listeners[own].push(listener),
  });
  return [end(0), end(1)];
}
