/** Commands and their answers over the channel between two processes, each answered once. */

import type { Answered, CommandName, Given } from './commands.ts';

/** One end of the channel. Messages arrive in the order in which they were sent. */
export interface ChannelEnd {
  send(message: object): void;
  onMessage(listener: (message: unknown) => void): void;
}

interface Asked {
  readonly ask: number;
  readonly name: CommandName;
  readonly given: unknown;
}

interface Answer {
  readonly answer: number;
  readonly found?: unknown;
  /** Why it failed. */
  readonly error?: string;
}

/** The process at the other end is gone, or its channel is. */
export class WorkerGone extends Error {
  constructor() {
    super('the worker is gone');
    this.name = 'WorkerGone';
  }
}

/** The side that asks. */
export interface Asker {
  /** @throws Error with the message of the failure; WorkerGone */
  ask<Name extends CommandName>(name: Name, given: Given<Name>): Promise<Answered<Name>>;
  /** Rejects what was not answered, and everything that is asked from now on. */
  gone(): void;
}

export function createAsker(channel: ChannelEnd): Asker {
  const waiting = new Map<
    number,
    { readonly resolve: (found: unknown) => void; readonly reject: (why: Error) => void }
  >();
  let asks = 0;
  let gone = false;
  channel.onMessage((message) => {
    if (!isAnswer(message)) return;
    const asked = waiting.get(message.answer);
    waiting.delete(message.answer);
    if (message.error === undefined) asked?.resolve(message.found);
    else asked?.reject(new Error(message.error));
  });
  return {
    ask<Name extends CommandName>(name: Name, given: Given<Name>) {
      if (gone) return Promise.reject(new WorkerGone());
      asks += 1;
      const ask = asks;
      return new Promise<Answered<Name>>((resolve, reject) => {
        waiting.set(ask, { resolve: resolve as (found: unknown) => void, reject });
        channel.send({ ask, name, given } satisfies Asked);
      });
    },
    gone() {
      gone = true;
      for (const { reject } of waiting.values()) reject(new WorkerGone());
      waiting.clear();
    },
  };
}

/** What answers each command. */
export type CommandHandlers = {
  readonly [Name in CommandName]: (given: Given<Name>) => Answered<Name> | Promise<Answered<Name>>;
};

/** Answers each command with what its handler returns, or with the message of what it throws. */
export function answerCommands(channel: ChannelEnd, handlers: CommandHandlers): void {
  channel.onMessage((message) => {
    if (isAsked(message)) void answer(channel, handlers[message.name] as (given: unknown) => unknown, message);
  });
}

async function answer(channel: ChannelEnd, handler: (given: unknown) => unknown, { ask, given }: Asked): Promise<void> {
  let message: Answer;
  try {
    message = { answer: ask, found: await handler(given) };
  } catch (error) {
    message = { answer: ask, error: error instanceof Error ? error.message : String(error) };
  }
  channel.send(message);
}

function isAsked(message: unknown): message is Asked {
  return typeof message === 'object' && message !== null && 'ask' in message;
}

function isAnswer(message: unknown): message is Answer {
  return typeof message === 'object' && message !== null && 'answer' in message;
}
