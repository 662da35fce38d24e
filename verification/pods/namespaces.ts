/** Two network namespaces with a cable between them: one is a pod, the other is anywhere else. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { leash } from '../../tools/local-world/leash.ts';

/** What stands in `PATH` of root, and not always in that of others. */
const IP = existsSync('/usr/sbin/ip') ? '/usr/sbin/ip' : 'ip';
/** Addresses for tests of networks (RFC 2544); no other namespace sees them. */
const POD_ADDRESS = '198.18.7.1';
const AGENT_ADDRESS = '198.18.7.2';

export interface Namespaces {
  readonly podAddress: string;
  /** Runs Node with these arguments there. */
  spawn(where: 'pod' | 'agent', args: readonly string[], env?: Readonly<Record<string, string>>): ChildProcess;
  /** Removes both, and with them the cable. */
  close(): void;
}

/** Why there can be no namespaces here; undefined: there can. */
export function namespacesFault(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are of Linux';
  if (process.getuid?.() !== 0) return 'only root may make network namespaces';
  const probe = `acg-probe-${process.pid}`;
  const made = ip('netns', 'add', probe);
  if (made === undefined) ip('netns', 'delete', probe);
  return made;
}

/** @throws Error with the words of `ip`, when nothing is left behind */
export function openNamespaces(): Namespaces {
  const names = { pod: `acg-pod-${process.pid}`, agent: `acg-agent-${process.pid}` };
  const cable = { pod: `acgp${process.pid}`, agent: `acga${process.pid}` };
  const close = (): void => {
    process.off('exit', close);
    for (const name of Object.values(names)) ip('netns', 'delete', name);
  };
  process.once('exit', close);
  const steps: readonly (readonly string[])[] = [
    ...Object.values(names).map((name) => ['netns', 'add', name]),
    ['link', 'add', cable.pod, 'netns', names.pod, 'type', 'veth', 'peer', 'name', cable.agent, 'netns', names.agent],
    ['-n', names.pod, 'address', 'add', `${POD_ADDRESS}/30`, 'dev', cable.pod],
    ['-n', names.agent, 'address', 'add', `${AGENT_ADDRESS}/30`, 'dev', cable.agent],
    ...(['pod', 'agent'] as const).flatMap((one) => [
      ['-n', names[one], 'link', 'set', 'lo', 'up'],
      ['-n', names[one], 'link', 'set', cable[one], 'up'],
    ]),
  ];
  for (const step of steps) {
    const fault = ip(...step);
    if (fault === undefined) continue;
    close();
    throw new Error(fault);
  }
  return {
    podAddress: POD_ADDRESS,
    spawn(where, args, env = {}) {
      // `ip` becomes the program, so a signal reaches it.
      const child = spawn(IP, ['netns', 'exec', names[where], process.execPath, ...args], {
        env: { PATH: process.env['PATH'] ?? '', ...env },
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      leash(child);
      return child;
    },
    close,
  };
}

/** Undefined when it did; else its words. */
function ip(...args: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync(IP, args, { encoding: 'utf8' });
  return status === 0 ? undefined : `ip ${args.join(' ')}: ${error?.message ?? stderr.trim()}`;
}
