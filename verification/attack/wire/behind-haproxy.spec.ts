import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { chanceOf } from '../../chaos/sim/chance.ts';
import { attack, isLongRun, measured } from '../catalogue.ts';
import { openTarget, type Target } from '../target.ts';
import { converse } from './conversation.ts';
import { corpus } from './corpus.ts';
import { numbered } from './framing-case.ts';
import { HEAD_CASES } from './framing-heads.ts';
import { LENGTH_CASES } from './framing-lengths.ts';
import { type ReverseProxy, SEEN, startHaproxy } from './haproxy.ts';
import { mutant } from './mutator.ts';
import { proofMaker } from './proofs.ts';

const CASES = [...LENGTH_CASES, ...HEAD_CASES];
const SEED = Number(process.env['ATTACK_SEED'] ?? 402);
const MUTANTS = 4_000;
const CONNECTIONS = 32;
/** Longer than any answer takes; HAProxy ends an incomplete request after 3 s. */
const SILENCE_MS = 400;

// HAProxy must be downloaded: the quick run has the same cases without it.
if (isLongRun)
  describe('two readers of the same bytes', () => {
    let target: Target;
    let proxy: ReverseProxy | undefined;
    let missing = '';
    before(async () => {
      target = await openTarget();
      try {
        proxy = await startHaproxy(target.url);
      } catch (thrown) {
        missing = thrown instanceof Error ? thrown.message : String(thrown);
      }
    });
    after(async () => {
      await proxy?.stop();
      await target?.stop();
    });

    const exchange = async (url: string, bytes: string | Buffer): Promise<void> => {
      const conversation = await converse(url);
      conversation.send(bytes);
      await conversation.until(1, SILENCE_MS);
      conversation.finish();
      await conversation.until(Number.POSITIVE_INFINITY, SILENCE_MS);
      conversation.close();
    };

    /**
     * Requests that the gateway served and HAProxy did not see, or that HAProxy saw once and the
     * gateway twice.
     */
    const unseen = (): readonly string[] => {
      const ids = target.backend.requests.map(({ headers }) => String(headers['x-request-id']));
      return ids.filter((id, at) => !id.startsWith(SEEN) || ids.indexOf(id) !== at);
    };

    /** Fails unless each of these gets its own answer on every connection to the gateway. */
    const inSync = async (url: string): Promise<void> => {
      const calls = Array.from({ length: 100 }, async (_, at) => {
        const body = JSON.stringify({ mine: at });
        const headers = { 'content-type': 'application/json' };
        const answer = await fetch(`${url}/api/resources/free_echo/invoke`, { method: 'POST', headers, body });
        assert.equal(await answer.text(), body);
      });
      await Promise.all(calls);
    };

    attack(
      'H1',
      'behind HAProxy the gateway serves exactly the requests that HAProxy saw',
      async (t) => {
        if (proxy === undefined) return t.skip(missing);
        for (const [number, { sends }] of CASES.entries()) await exchange(proxy.url, numbered(sends, number));
        await inSync(proxy.url);
        measured(t, 'framing cases behind a proxy', CASES.length);
        measured(t, 'differing views of the backend', unseen().length);
        assert.deepEqual(unseen(), []);
        assert.ok(target.backend.requests.length > 100, 'HAProxy let calls through');
      },
      { timeout: 300_000 },
    );

    attack(
      'H1',
      `the same for ${MUTANTS} mutants, seed ${SEED}`,
      async (t) => {
        if (proxy === undefined) return t.skip(missing);
        const { url } = proxy;
        const proofs = await proofMaker(target);
        const proven = {
          echo: await proofs.proof('echo'),
          report: await proofs.proof('market_report', { city: 'Berlin' }),
        };
        const requests = corpus(target.adminToken, proven);
        target.backend.forget();
        const dice = chanceOf(SEED);
        let left = MUTANTS;
        const line = async (): Promise<void> => {
          for (; left > 0; left -= 1) await exchange(url, mutant(requests, dice));
        };
        await Promise.all(Array.from({ length: CONNECTIONS }, line));
        await inSync(url);
        measured(t, 'differing views of the backend', unseen().length);
        assert.deepEqual(unseen(), []);
        await target.stillSells();
      },
      { timeout: 600_000 },
    );
  });
