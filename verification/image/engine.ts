/** buildah and podman with storage of their own, which they share with nothing on the machine. */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const BUILD_TIMEOUT_MS = 900_000;

/** What an image says of itself. */
export interface ImageFacts {
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
