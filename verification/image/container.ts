/** The gateway's image run as the sidecar of a pod is: read-only, without rights, in 192 MiB. */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { worldConfig, writeConfig } from '../../spec/support/config.ts';
import { freePorts } from '../../spec/support/ports.ts';
import type { Chain } from '../../tools/local-world/chain.ts';
import { ended } from '../../tools/local-world/child.ts';

/** The user of the Dockerfile and of the pods. */
export const USER = 65_532;
/** The limit of deploy/components/sidecar. */
export const LIMIT_MIB = 192;
const NAME = 'gateway';
const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 20;
const STOP_SECONDS = 20;
const OUTPUT_TAIL_CHARS = 4_096;

/** A gateway in a container. */
export interface Container {
  readonly baseUrl: string;
  readonly managementUrl: string;
  /** Of the gateway's process, as this one sees it. */
  readonly pid: number;
  /** From the call of the engine to the first answer of each, milliseconds. */
  readonly healthMs: number;
  readonly readyMs: number;
  /** The HEALTHCHECK of the image, run once; resolves to what is wrong. */
  healthcheck(): Promise<string | undefined>;
  /** The signal of the image, and how the process ended after it. */
  stop(): Promise<{ readonly code: number | null; readonly ms: number }>;
}

/** What a container is started with. */
interface Start {
  readonly engine: Engine;
  readonly image: string;
  /** A folder for its configuration. */
  readonly folder: string;
  readonly chain: Chain;
  readonly backendUrl: string;
}

/** Starts one and waits for /health and /ready. @throws Error with the end of its output */
export async function startContainer({ engine, image, folder, chain, backendUrl }: Start): Promise<Container> {
  const [agents = 0, management = 0] = await freePorts(2);
  await configure(folder, {
    ...{ backendUrl, chain, facilitator: { mode: 'local' }, ports: { agents, management } },
    storage: { sqlite: { path: '/data/gateway.db' } },
  });
  const startedAt = performance.now();
  const child = engine.run(...AS_A_POD, '--volume', `${folder}:/etc/agent-commerce:ro`, image);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output = `${output}${text}`.slice(-OUTPUT_TAIL_CHARS);
    });
  const ending = ended(child);
  const over = new AbortController();
  void ending.then(() => over.abort());
  const answered = async (url: string): Promise<number> => {
    if (!(await untilOk(url, over.signal))) throw new Error(`${url} was not answered 200\n${output}`);
    return Math.round(performance.now() - startedAt);
  };
  const managementUrl = `http://127.0.0.1:${management}`;
  const healthMs = await answered(`${managementUrl}/health`);
  const baseUrl = `http://127.0.0.1:${agents}`;
  const readyMs = await answered(`${baseUrl}/ready`);
  const pid = Number(await engine.podman('inspect', '--format', '{{.State.Pid}}', NAME));
  return {
    ...{ baseUrl, managementUrl, healthMs, readyMs, pid },
    healthcheck: () =>
      engine.podman('healthcheck', 'run', NAME).then(
        () => undefined,
        (error: unknown) => String(error),
      ),
    stop: async () => {
      // As the kubelet's runtime does: the engine here takes seconds of its own to begin.
      const stoppedAt = performance.now();
      process.kill(pid, 'SIGTERM');
      const cut = setTimeout(() => process.kill(pid, 'SIGKILL'), STOP_SECONDS * 1_000);
      while (existsSync(`/proc/${pid}`)) await delay(POLL_MS);
      clearTimeout(cut);
      const ms = Math.round(performance.now() - stoppedAt);
      return { code: (await ending).code, ms };
    },
  };
}

const AS_A_POD: readonly string[] = [
  ...['--rm', '--name', NAME, '--network', 'host', '--read-only', '--read-only-tmpfs=false'],
  ...['--cap-drop', 'all', '--security-opt', 'no-new-privileges'],
  ...['--memory', `${LIMIT_MIB}m`, '--memory-swap', `${LIMIT_MIB}m`],
  // Without them runc asks for more than it may have where CAP_SYS_RESOURCE is missing.
  ...['--ulimit', 'nofile=20000:20000', '--ulimit', 'nproc=1024:1024'],
  ...['--tmpfs', '/data:rw,size=16m,mode=1777'],
  ...['--env', 'AGENT_COMMERCE_CONFIG=/etc/agent-commerce/gateway.yaml', '--env', 'GATEWAY_DRAIN_SECONDS=0'],
  // The kubelet asks too; a timer of the engine's would need systemd.
  ...['--health-interval', 'disable'],
];

async function configure(folder: string, parts: Parameters<typeof worldConfig>[0]): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'gateway.yaml');
  await writeConfig(path, worldConfig(parts));
  chmodSync(folder, 0o755);
  for (const one of [folder, path]) chownSync(one, USER, USER);
}

async function untilOk(url: string, over: AbortSignal): Promise<boolean> {
  for (const deadline = Date.now() + READY_TIMEOUT_MS; Date.now() < deadline && !over.aborted; await delay(POLL_MS)) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(READY_TIMEOUT_MS) });
      await response.arrayBuffer();
      if (response.status === 200) return true;
    } catch {
      // Not listening yet.
    }
  }
  return false;
}

const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const BUILD_TIMEOUT_MS = 900_000;

/** What an image says of itself. */
interface ImageFacts {
  readonly Size: number;
  readonly RootFS: { readonly Layers: readonly string[] };
  readonly Config: {
    readonly User?: string;
    readonly StopSignal?: string;
    readonly Cmd?: readonly string[];
  };
  readonly Healthcheck?: { readonly Test?: readonly string[] };
}

/** Builds images and runs them. */
export interface Engine {
  /** @throws Error with the end of what the build printed */
  build(image: string, context: string, file: string, args?: Readonly<Record<string, string>>): Promise<void>;
  podman(...args: readonly string[]): Promise<string>;
  inspect(image: string): Promise<ImageFacts>;
  /** Removes the images and containers. */
  clear(): void;
  /** `podman run` with these arguments, in the foreground. */
  run(...args: readonly string[]): ChildProcess;
}

/** Below `work`; what an earlier run left there is removed, but for what npm has downloaded. */
export function openEngine(work: string): Engine {
  const folder = (name: string): string => join(work, name);
  const clear = (): void => {
    for (const name of ['storage', 'run', 'libpod']) rmSync(folder(name), { recursive: true, force: true });
  };
  clear();
  for (const name of ['storage', 'run', 'libpod', 'tmp']) mkdirSync(folder(name), { recursive: true });
  const policy = folder('policy.json');
  writeFileSync(policy, JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }));
  writeFileSync(folder('containers.conf'), '');
  const storage = ['--root', folder('storage'), '--runroot', folder('run'), '--storage-driver', 'vfs'];
  const podmanArgs = [
    ...[...storage, '--tmpdir', folder('libpod'), '--events-backend', 'none'],
    ...['--runtime', 'runc', '--cgroup-manager', 'cgroupfs'],
  ];
  const env = {
    ...{ PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`, HOME: folder('tmp'), TMPDIR: folder('tmp') },
    CONTAINERS_CONF: folder('containers.conf'),
  };
  const call = async (program: string, args: readonly string[]): Promise<string> => {
    const options = { env, maxBuffer: MAX_OUTPUT_BYTES, timeout: BUILD_TIMEOUT_MS };
    return (await promisify(execFile)(program, args, options)).stdout;
  };
  const podman = (...args: readonly string[]) => call('podman', [...podmanArgs, ...args]);
  return {
    podman,
    clear,
    build: async (image, context, file, buildArgs = {}) => {
      const values = Object.entries(buildArgs).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
      await call('buildah', [
        ...[...storage, 'bud', '--signature-policy', policy, '--isolation', 'chroot', '--network', 'host'],
        // The other format has no health check.
        ...['--format', 'docker', '--timestamp', '0', ...values, '--tag', image, '--file', file, context],
      ]);
    },
    inspect: async (image) => {
      const [facts] = JSON.parse(await podman('image', 'inspect', image)) as readonly ImageFacts[];
      if (facts === undefined) throw new Error(`${image} is no image`);
      return facts;
    },
    run: (...args) => spawn('podman', [...podmanArgs, 'run', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] }),
  };
}
