/**
 * `make image`: builds deploy/Dockerfile over bases made here, runs the image as the sidecar of a
 * pod is run, and prints a row a goal. What keeps it from that is a line `NOT RUN` each, and exit
 * code 1. `--seconds 10`: the length of each flood.
 */

import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startSampleBackend } from '../../spec/support/sample-backend.ts';
import { startChain } from '../../tools/local-world/chain.ts';
import { ended } from '../../tools/local-world/child.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { type Row, table } from '../streams/row.ts';
import { bringTools, CERTIFICATES, makeBases, namespaced, npmFolder } from './bases.ts';
import { imageRows, runRows } from './checks.ts';
import { type Engine, openEngine, startContainer } from './container.ts';

const PROJECT = join(import.meta.dirname, '../..');
const WORK = join(PROJECT, '.cache/image');
/** Set in the process that runs inside the namespaces: the folder of npm. */
const INSIDE = 'ACG_IMAGE_NPM';
const IMAGE = 'localhost/agent-commerce-gateway';
const RUNTIME = 'localhost/base-runtime';
const BUILD = 'localhost/base-build';
const BASE_FILE = 'FROM scratch\nCOPY . /\nENV PATH=/usr/local/bin:/usr/bin:/bin\n';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '10' } } });
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const npm = process.env[INSIDE];
process.exitCode = npm === undefined ? await outside() : await inside(npm);

/** Brings the tools, and runs this file again where they are. */
async function outside(): Promise<number> {
  mkdirSync(WORK, { recursive: true });
  const { overlay, missing } = bringTools(join(WORK, 'tools'));
  const found = npmFolder();
  const notRun =
    found === undefined
      ? [...missing, 'no npm on PATH that brings its own packages: it installs in the build stage']
      : missing;
  for (const line of notRun) say(`NOT RUN: ${line}`);
  if (notRun.length > 0 || found === undefined) return 1;
  const again = [process.execPath, import.meta.filename, ...process.argv.slice(2)];
  const [program = '', ...args] = namespaced(overlay, again);
  const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, [INSIDE]: found } });
  leash(child);
  return (await ended(child)).code ?? 1;
}

async function inside(npmAt: string): Promise<number> {
  const engine = openEngine(WORK);
  try {
    const startedAt = Date.now();
    const refusal = await buildImages(engine, npmAt).catch(endOf);
    if (refusal !== undefined) {
      say(`NOT RUN: the image was not built: ${refusal}`);
      return 1;
    }
    say(`built in ${Math.round((Date.now() - startedAt) / 1_000)} s`);
    const rows = [...(await imageRows(engine, IMAGE, RUNTIME)), ...(await rowsOfRun(engine))];
    say(table(rows));
    return rows.every(({ met }) => met) ? 0 : 1;
  } finally {
    engine.clear();
  }
}

async function buildImages(engine: Engine, npmAt: string): Promise<undefined> {
  const { runtime, build } = makeBases(WORK, npmAt);
  const file = join(WORK, 'runtime.Dockerfile');
  writeFileSync(file, BASE_FILE);
  await engine.build(RUNTIME, runtime, file);
  const over = join(WORK, 'build.Dockerfile');
  writeFileSync(over, `FROM ${RUNTIME}\nCOPY . /\nENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}\n`);
  await engine.build(BUILD, build, over);
  await engine.build(IMAGE, PROJECT, join(PROJECT, 'deploy/Dockerfile'), { NODE_IMAGE: BUILD, RUNTIME_IMAGE: RUNTIME });
}

async function rowsOfRun(engine: Engine): Promise<readonly Row[]> {
  await using ends = new AsyncDisposableStack();
  const chain = ends.adopt(await startChain(), ({ stop }) => stop());
  const backend = ends.adopt(await startSampleBackend(), ({ stop }) => stop());
  const folder = join(WORK, 'configuration');
  const container = await startContainer({ engine, image: IMAGE, folder, chain, backendUrl: backend.url });
  return await runRows(container, chain, Number(values.seconds));
}

/** The message, and the end of what a program printed. */
function endOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const printed = 'stderr' in error && typeof error.stderr === 'string' ? error.stderr : '';
  return printed === '' ? error.message : printed.trim().split('\n').slice(-5).join('\n  ');
}
