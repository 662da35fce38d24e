/** Memory of a gateway and its workers, as their container counts it. */

import { readdirSync, readFileSync } from 'node:fs';

const KIBIBYTE = 1_024;

/**
 * Bytes that a process and all below it have of their own, and the pages of files once: the program
 * of Node is the same for all of them, and their container counts it once.
 */
export function treeMemoryBytes(pid: number): number {
  const found = processesBelow(pid).map((one) => {
    const status = readFileSync(`/proc/${one}/status`, 'latin1');
    return { own: bytesIn(status, 'RssAnon'), files: bytesIn(status, 'RssFile') };
  });
  return found.reduce((sum, { own }) => sum + own, 0) + Math.max(...found.map(({ files }) => files));
}

function processesBelow(pid: number): readonly number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1').split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(processesBelow)];
}

function bytesIn(status: string, name: 'RssAnon' | 'RssFile'): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * KIBIBYTE;
}
