import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { debianProgram } from '../../../spec/support/debian.ts';
import { freePorts } from '../../../spec/support/ports.ts';
import { terminate } from '../../../tools/local-world/child.ts';
import { leash } from '../../../tools/local-world/leash.ts';
import { chanceOf } from '../../chaos/sim/chance.ts';
import { attack, isLongRun, measured } from '../catalogue.ts';
import { openTarget, proofMaker, type Target } from '../target.ts';
import { converse, numbered } from './conversation.ts';
import { HEAD_CASES, LENGTH_CASES } from './framing-cases.ts';
import { corpus, mutant } from './mutator.ts';

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

/** A real HAProxy before a gateway. */
interface ReverseProxy {
  readonly url: string;
  stop(): Promise<void>;
}

const READY_TIMEOUT_MS = 10_000;
const LOOK_EVERY_MS = 20;
const STOP_GRACE_MS = 2_000;
/** The prefix of the id of every request that HAProxy has seen. */
const SEEN = 'seen-';

/**
 * Starts one that gives every request an id, and reuses its connections to the gateway for all
 * clients, so that the answer to a smuggled request would reach another client. @throws Error of
 * one line when HAProxy is not installed and cannot be downloaded
 */
async function startHaproxy(gatewayUrl: string): Promise<ReverseProxy> {
  const { program, env } = await debianProgram({
    name: 'haproxy',
    variable: 'TEST_HAPROXY',
    folder: 'haproxy',
    packages: { names: ['haproxy'] },
    path: 'usr/sbin/haproxy',
    shows: '-v',
  });
  const [port = 0] = await freePorts(1);
  const directory = mkdtempSync(join(tmpdir(), 'acg-haproxy-'));
  const configuration = join(directory, 'haproxy.cfg');
  writeFileSync(configuration, configurationFor(port, new URL(gatewayUrl).host));
  const child = spawn(program, ['-db', '-f', configuration], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  leash(child);
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => {
    output = `${output}${chunk.toString()}`.slice(-2_000);
  });
  const stop = async (): Promise<void> => {
    await terminate(child, STOP_GRACE_MS);
    rmSync(directory, { recursive: true, force: true });
  };
  for (const deadline = Date.now() + READY_TIMEOUT_MS; !(await listens(port)); await delay(LOOK_EVERY_MS))
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop();
      throw new Error(`haproxy does not listen: ${output}`);
    }
  return { url: `http://127.0.0.1:${port}`, stop };
}

function configurationFor(port: number, gateway: string): string {
  return [
    'global',
    '  tune.bufsize 65536',
    'defaults',
    '  mode http',
    '  timeout connect 2s',
    '  timeout client 10s',
    '  timeout server 10s',
    '  timeout http-request 3s',
    '  timeout queue 30s',
    '  retry-on conn-failure empty-response',
    '  http-reuse always',
    'frontend agents',
    `  bind 127.0.0.1:${port}`,
    `  http-request set-header X-Request-Id ${SEEN}%[uuid()]`,
    '  default_backend gateway',
    'backend gateway',
    `  server gateway ${gateway} maxconn 4`,
    '',
  ].join('\n');
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
