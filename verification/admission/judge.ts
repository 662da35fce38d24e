/** Brings and runs the judge: the admission code of a kube-apiserver, from Debian's packages. */

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unpackUnstable } from '../../spec/support/unstable.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';

const SOURCES = fileURLToPath(new URL('judge', import.meta.url));
const CACHE = fileURLToPath(new URL('../../.cache/admission', import.meta.url));
const PACKAGES = join(CACHE, 'packages');
/** The compiler, and the libraries of a kube-apiserver with what they depend on. */
const WANTED = ['golang-go', 'golang-k8s-apiserver-dev', 'golang-k8s-client-go-dev'];
const LIBRARIES = /^golang-/;
const BUILD_TIMEOUT_MS = 1_800_000;
const JUDGE_TIMEOUT_MS = 300_000;

/** What has been applied to a cluster. */
export interface Cluster {
  /** YAML documents: namespaces, parameters, policies, bindings, webhook configurations. */
  readonly manifests: string;
  /** Where the API server finds a service: `namespace/name` to `host:port`. */
  readonly services?: Readonly<Record<string, string>>;
  /** A file with the API server's own certificate for webhooks; none when absent. */
  readonly kubeconfig?: string;
}

/** One request to the API server of a cluster. */
export interface Review {
  readonly name: string;
  readonly cluster: string;
  readonly namespace: string;
  readonly operation: 'CREATE' | 'UPDATE';
  readonly subresource?: 'ephemeralcontainers';
  readonly dryRun?: boolean;
  readonly object: Pod;
  readonly oldObject?: Pod;
}

/** What the API server would have stored, or its refusal. */
export interface Verdict {
  readonly name: string;
  readonly cluster: string;
  readonly object?: Pod;
  readonly refused?: string;
  readonly code?: number;
  readonly warnings?: readonly string[];
  readonly mutateMicros: number;
  readonly validateMicros: number;
}

/**
 * The program that judges. It is built once for its sources; the packages stay for the next time.
 * @throws Error of one line when it cannot be had here
 */
export function judgeProgram(say: (line: string) => void): string {
  if (process.platform !== 'linux') throw new Error(`the judge is built from Debian's packages, on Linux only`);
  const program = join(CACHE, `judge-${fingerprint()}`);
  if (existsSync(program)) return program;
  const go = join(PACKAGES, 'root/usr/bin/go');
  if (!existsSync(go)) {
    say('fetching the packages of a kube-apiserver from Debian unstable (324 MB, once)');
    mkdirSync(CACHE, { recursive: true });
    unpackUnstable(PACKAGES, WANTED, LIBRARIES);
    if (!existsSync(go)) throw new Error(`Debian's packages hold no ${basename(go)}`);
  }
  say('building the judge (minutes the first time, seconds after that)');
  build(go, program);
  return program;
}

function fingerprint(): string {
  const hash = createHash('sha256');
  for (const file of globSync('*.go', { cwd: SOURCES }).sort()) hash.update(readFileSync(join(SOURCES, file)));
  return hash.digest('hex').slice(0, 16);
}

function build(go: string, program: string): void {
  const { status, stderr, error } = spawnSync(
    go,
    ['build', '-p', String(availableParallelism()), '-o', `${program}.new`, '.'],
    {
      cwd: SOURCES,
      encoding: 'utf8',
      timeout: BUILD_TIMEOUT_MS,
      env: {
        PATH: process.env['PATH'],
        HOME: CACHE,
        GO111MODULE: 'off',
        GOPATH: join(PACKAGES, 'root/usr/share/gocode'),
        GOCACHE: join(CACHE, 'go-build'),
        GOTOOLCHAIN: 'local',
        GOFLAGS: '',
        CGO_ENABLED: '0',
      },
    },
  );
  if (status !== 0) throw new Error(`the judge does not build: ${error?.message ?? stderr.trim()}`);
  renameSync(`${program}.new`, program);
}

/**
 * Puts every review to its cluster, in one process. The verdicts are in the order of the reviews.
 * @throws Error when the judge itself fails
 */
export async function judge(
  program: string,
  clusters: Readonly<Record<string, Cluster>>,
  reviews: readonly Review[],
): Promise<readonly Verdict[]> {
  const child = spawn(program, {
    // The fake API server of the judge knows no streamed lists.
    env: { ...process.env, KUBE_FEATURE_WatchListClient: 'false' },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: JUDGE_TIMEOUT_MS,
  });
  let output = '';
  let noise = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    noise += text;
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(JSON.stringify({ clusters, cases: reviews }));
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once('error', reject).once('close', resolve);
  const code = await promise;
  if (code !== 0)
    throw new Error(`the judge ended with ${code}: ${noise.slice(Math.max(0, noise.lastIndexOf('judge: '))).trim()}`);
  return output
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Verdict);
}
