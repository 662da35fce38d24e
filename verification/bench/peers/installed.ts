/** The peers that no test needs: `make bench` installs them once, below `.cache`. */

import { join } from 'node:path';
import { installLocked } from '../../npm-folder.ts';
import {
  type Contestant,
  INPUT_SCHEMA,
  NotAvailable,
  PEER_QUESTION,
  plainQuestion,
  type Question,
} from '../contestant.ts';
import { peerProgram } from '../serve-peer.ts';
import { ASSET, invocationOf, PAID_RESOURCE, PAYEE } from './gateway.ts';
import manifest from './installed/package.json' with { type: 'json' };

const SOURCES = join(import.meta.dirname, 'installed');
const FOLDER = join(import.meta.dirname, '../../../.cache/bench-peers');

type Peer = keyof typeof manifest.dependencies;

function exactly(...names: readonly Peer[]): string {
  return names.map((name) => `${name} ${manifest.dependencies[name]}`).join(' + ');
}

let ready: Promise<unknown> | undefined;

/** Installs what the lockfile of the peers names, unless it is there. @throws NotAvailable */
function install(): Promise<unknown> {
  ready ??= installLocked(SOURCES, FOLDER).catch((cause: unknown) => {
    const [line = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n').slice(-3);
    throw new NotAvailable(`the peers could not be installed: ${line}`);
  });
  return ready;
}

/** The program of an installed peer. `own`: further variables that it reads. */
function program(file: string, own: (parts: { facilitatorUrl: string; folder: string }) => Record<string, string>) {
  return async (surroundings: Parameters<Contestant['program']>[0]) => {
    await install();
    return peerProgram(join(FOLDER, file), own(surroundings))(surroundings);
  };
}

const OFFICIAL = exactly('@x402/express', 'express', 'pino-http');
const QUOTED = invocationOf(PAID_RESOURCE);
// The official middleware answers 402 with an empty object.
const CHALLENGED: Question = plainQuestion(QUOTED, 402, '{}');
const PAID: Question = { ...PEER_QUESTION, path: QUOTED, pays: true };

function official(facilitator: 'http' | 'noop' | 'viem') {
  return {
    readyPath: '/',
    program: program('x402-express.mjs', ({ facilitatorUrl }) => ({
      FACILITATOR: facilitator,
      FACILITATOR_URL: facilitatorUrl,
      ASSET,
      PAYEE,
    })),
  };
}

/** The official middleware before a handler that asks the backend over a bare undici pool. */
export const officialChallenge: Contestant = {
  ...official('noop'),
  id: 'official-challenge',
  suite: 'challenge',
  title: OFFICIAL,
  question: CHALLENGED,
};

export const officialPaid: readonly Contestant[] = [
  {
    ...official('http'),
    id: 'official-http',
    suite: 'paid',
    title: `${OFFICIAL}, HTTPFacilitatorClient, handler on an undici pool`,
    question: PAID,
    facilitatorCalls: { verify: 1, settle: 1 },
  },
  {
    ...official('noop'),
    id: 'official-noop',
    suite: 'paid',
    title: `${OFFICIAL}, a facilitator in process that does nothing`,
    question: PAID,
    facilitatorCalls: { verify: 0, settle: 0 },
  },
  {
    ...official('viem'),
    id: 'official-viem',
    suite: 'paid',
    title: `${OFFICIAL}, ${exactly('viem')} verifyTypedData in process, settled by nothing`,
    question: PAID,
    facilitatorCalls: { verify: 0, settle: 0 },
  },
];

/** The closest other gateway. */
export const devlab: Contestant = {
  id: 'devlab',
  suite: 'free',
  title: `${exactly('@devlab.group/agent-commerce')}, free call, SQLite file, its log`,
  question: PEER_QUESTION,
  readyPath: '/health',
  program: program('agent-commerce.mjs', ({ folder }) => ({
    FOLDER: folder,
    INPUT_SCHEMA: JSON.stringify(INPUT_SCHEMA),
  })),
};
