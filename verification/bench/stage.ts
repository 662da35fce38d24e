/** The shared backend, facilitator and folder of all contestants, and their start. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { answerJson, type HttpServer, serveHttp } from '../../spec/support/http-server.ts';
import { freePorts } from '../../spec/support/ports.ts';
import type { Contestant, Surroundings } from './contestant.ts';
import type { Cores } from './cores.ts';
import { type Running, startProgram } from './program.ts';

const SUPPORTED = { kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:84532' }] };

/** A contestant that has started. */
export interface Started {
  readonly contestant: Contestant;
  readonly origin: string;
  readonly program: Running;
}

/** The options of the stage. */
export interface StageOptions {
  readonly cores: Cores;
  readonly signal: AbortSignal;
  /** Where CPU profiles are written; undefined: no profiles. */
  readonly profile: string | undefined;
}

/**
 * Shared by all contestants: the backend, a facilitator that answers only GET /supported, a folder.
 */
export interface Stage {
  /** @throws Error with the last output of a contestant that did not start */
  start(contestant: Contestant): Promise<Started>;
}

/** Starts the shared parts. `ends` ends all that is started here or on the stage later. */
export async function setStage(ends: AsyncDisposableStack, options: StageOptions): Promise<Stage> {
  const { cores, signal } = options;
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  ends.defer(() => rm(folder, { recursive: true, force: true }));
  const [port = 0] = await freePorts(1);
  const backend = startProgram(cores.others, [join(import.meta.dirname, 'backend.ts')], { PORT: String(port) });
  ends.defer(() => backend.stop());
  const backendUrl = `http://127.0.0.1:${port}`;
  await backend.ready(backendUrl, signal);
  const facilitator = await startFacilitatorStub();
  ends.defer(() => facilitator.stop());
  const shared = { backendUrl, facilitatorUrl: facilitator.url, folder };
  return { start: (contestant) => start(contestant, shared, ends, options) };
}

async function start(
  contestant: Contestant,
  shared: Pick<Surroundings, 'backendUrl' | 'facilitatorUrl' | 'folder'>,
  ends: AsyncDisposableStack,
  { cores, signal, profile }: StageOptions,
): Promise<Started> {
  const [port = 0, sparePort = 0] = await freePorts(2);
  const { args, env } = await contestant.program({ ...shared, port, sparePort });
  const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-name=${contestant.id}.cpuprofile`];
  if (profile !== undefined) flags.push(`--cpu-prof-dir=${resolve(profile)}`);
  const program = startProgram(cores.contestant, [...flags, ...args], env);
  ends.defer(() => program.stop());
  const origin = `http://127.0.0.1:${port}`;
  await program.ready(`${origin}${contestant.readyPath}`, signal);
  return { contestant, origin, program };
}

/** Answers the readiness check; any other request is a fault of the benchmark and gets 404. */
export function startFacilitatorStub(): Promise<HttpServer> {
  return serveHttp(({ request, response }) => {
    const known = request.method === 'GET' && request.url === '/supported';
    answerJson(response, known ? 200 : 404, known ? SUPPORTED : {});
  });
}
