/** Runs slowhttptest, where it is installed. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { SlowKind } from './slow.ts';

const COMMAND = 'slowhttptest';
/** New connections a second, and seconds between two writes. */
const RATE = '200';
const DRIP_SECONDS = '5';

const FLAGS: Readonly<Record<SlowKind, readonly string[]>> = {
  headers: ['-H'],
  body: ['-B', '-s', '8192', '-t', 'POST'],
  // A window of a few bytes, read at intervals; pipelined requests make the answers large.
  reading: ['-X', '-w', '512', '-y', '1024', '-n', '5', '-z', '32', '-k', '3'],
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: its output is for a terminal.
const COLOURS = /\x1b\[[0-9;]*[A-Za-z]/g;

/** slowhttptest, which is in Debian. */
export function hasSlowhttptest(): boolean {
  return spawnSync(COMMAND, ['-h']).error === undefined;
}

/** Runs it for `seconds`; resolves to its final count of connections. */
export async function startSlowhttptest(
  kind: SlowKind,
  connections: number,
  seconds: number,
  url: string,
): Promise<string> {
  const path = kind === 'body' ? '/api/resources/free_echo/invoke' : '/api/resources';
  const args = ['-c', String(connections), ...FLAGS[kind], '-i', DRIP_SECONDS, '-r', RATE, '-l', String(seconds)];
  const child = spawn(COMMAND, [...args, '-u', `${url}${path}`], { stdio: ['ignore', 'pipe', 'ignore'] });
  let output = '';
  child.stdout.setEncoding('latin1').on('data', (text: string) => {
    output = (output + text).slice(-4_000);
  });
  await once(child, 'close');
  const figures = [
    ...output.replaceAll(COLOURS, '').matchAll(/(pending|connected|closed|service available):\D*?(\w+)/g),
  ].slice(-4);
  return figures.map(([, what, value]) => `${what} ${value}`).join(', ');
}
