/**
 * A kubectl that renders kustomize: the one on PATH when it is new enough, else one unpacked into
 * `.cache/kubectl` from Debian unstable. Changes nothing on the machine and needs no root. As a
 * script it prepares the cache and prints the path.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unpackUnstable } from '../support/unstable.ts';

/** kustomize components with label targets, and native sidecars in the merge schema. */
const LEAST_MINOR = 32;
const CACHE = fileURLToPath(new URL('../../.cache/kubectl', import.meta.url));
const UNPACKED = join(CACHE, 'root/usr/bin/kubectl');
const RENDER_TIMEOUT_MS = 30_000;
const RENDER_MAX_BYTES = 8 * 1024 * 1024;

/** Minor version of a kubectl 1.x, or undefined when the program is absent or another one. */
function minorOf(program: string): number | undefined {
  const { status, stdout } = spawnSync(program, ['version', '--client', '-o', 'json'], {
    encoding: 'utf8',
    timeout: RENDER_TIMEOUT_MS,
  });
  if (status !== 0) return undefined;
  const minor = /"gitVersion":\s*"v1\.(\d+)\./.exec(stdout)?.[1];
  return minor === undefined ? undefined : Number(minor);
}

function newEnough(program: string): boolean {
  return (minorOf(program) ?? 0) >= LEAST_MINOR;
}

/** Path of a kubectl that is new enough. @throws Error when none is there or can be fetched */
export function kubectl(): string {
  if (newEnough('kubectl')) return 'kubectl';
  if (existsSync(UNPACKED) && newEnough(UNPACKED)) return UNPACKED;
  const wanted = `kubectl 1.${LEAST_MINOR} or newer is not on PATH and could not be had from Debian unstable`;
  try {
    unpackUnstable(CACHE, ['kubectl']);
  } catch (cause) {
    throw new Error(`${wanted}: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  if (!newEnough(UNPACKED)) throw new Error(`${wanted}: the one found there does not run`);
  return UNPACKED;
}

/** The YAML stream of `kubectl kustomize directory`, offline. @throws kustomize's own message */
export function kustomize(directory: string): string {
  const { status, stdout, stderr } = spawnSync(kubectl(), ['kustomize', directory], {
    encoding: 'utf8',
    timeout: RENDER_TIMEOUT_MS,
    maxBuffer: RENDER_MAX_BYTES,
  });
  if (status !== 0) throw new Error(stderr.trim());
  return stdout;
}

if (import.meta.main) {
  try {
    console.log(kubectl());
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
