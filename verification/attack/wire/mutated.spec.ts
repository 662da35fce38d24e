import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { chanceOf } from '../../chaos/sim/chance.ts';
import { attack, measured, times } from '../catalogue.ts';
import { formOf, openTarget, proofMaker, type Target } from '../target.ts';
import { converse } from './conversation.ts';
import { corpus, mutant } from './mutator.ts';

const REQUESTS = Number(process.env['ATTACK_REQUESTS'] ?? times(2_000, 20_000));
const SEED = Number(process.env['ATTACK_SEED'] ?? 402);
const CONNECTIONS = 64;
/** Beyond the resident memory after the first requests; more would be a leak. */
const MAX_GROWTH_BYTES = 96 * 1024 * 1024;
/** After this our half of an unanswered connection ends: a truncated request is never complete. */
const SILENCE_MS = 200;
/** A paid call joins another one (3 s), waits for a slot (3 s) and is verified (6.5 s) at most. */
const LONGEST_ANSWER_MS = 15_000;
/** The value of the two proofs, base units: the price of a report and that of an echo. */
const MOST_INCOME = 10_000n + 1_000n;

describe(`requests that were mutated, seed ${SEED}`, () => {
  let target: Target;
  let requests: readonly Buffer[];
  before(async () => {
    target = await openTarget();
    const proofs = await proofMaker(target);
    requests = corpus(target.adminToken, {
      echo: await proofs.proof('echo'),
      report: await proofs.proof('market_report', { city: 'Berlin' }),
    });
  });
  after(() => target.stop());

  attack(
    ['H1', 'B5', 'O9'],
    'each request of the corpus gets an answer in a known form before it is mutated',
    async () => {
      for (const bytes of requests) assert.equal(await fault(bytes, 1), undefined, bytes.toString('latin1'));
    },
  );

  attack(
    ['H1', 'B5', 'O9'],
    `${REQUESTS} mutants: none crashes it, and none gets an answer outside the forms`,
    async (t) => {
      const dice = chanceOf(SEED);
      const before = target.residentBytes();
      const offending: string[] = [];
      let left = REQUESTS;
      const line = async (): Promise<void> => {
        while (left > 0) {
          left -= 1;
          const bytes = mutant(requests, dice);
          const why = await fault(bytes);
          if (why !== undefined) offending.push(`${why}\n${JSON.stringify(bytes.toString('latin1'))}`);
        }
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, line));
      measured(t, 'mutated requests', REQUESTS);
      measured(t, 'answers outside the forms', offending.length);
      assert.equal(offending.length, 0, `seed ${SEED}: ${offending[0]}`);
      const growth = target.residentBytes() - before;
      assert.ok(growth < MAX_GROWTH_BYTES, `${growth} bytes more are resident`);
    },
    { timeout: 900_000 },
  );

  attack(
    ['H1', 'X1'],
    'the same process still sells, has settled each proof once at most, and logs no bug',
    async (t) => {
      await target.stillSells();
      measured(t, 'crashes', 0);
      const income = await target.chain.balanceOf(target.payTo);
      assert.ok(income <= MOST_INCOME, `${income} were paid for two proofs`);
      assert.equal(
        target.gateway.log.find(({ msg }) => msg === 'a bug'),
        undefined,
      );
    },
  );

  /** The fault of the answer to these bytes on a connection of their own; undefined without one. */
  async function fault(bytes: Buffer, leastAnswers = 0): Promise<string | undefined> {
    const conversation = await converse(target.url);
    try {
      conversation.send(bytes);
      await conversation.until(1, leastAnswers === 0 ? SILENCE_MS : LONGEST_ANSWER_MS);
      conversation.finish();
      const { answers, rest } = await conversation.until(Number.POSITIVE_INFINITY, LONGEST_ANSWER_MS);
      if (!conversation.ended()) return 'the connection stays open';
      if (rest.length > 0) return `not framed: ${rest.toString('latin1', 0, 200)}`;
      if (answers.length < leastAnswers) return 'no answer';
      const formless = answers.find((answer) => formOf(answer) === undefined);
      return formless === undefined ? undefined : `${formless.status} ${formless.body.toString('utf8', 0, 300)}`;
    } finally {
      conversation.close();
    }
  }
});
