/**
 * Runs command lines one after another as the entry of a checkout does, in one process, and tells
 * what each printed and ended with. Lists of words come as a message, results go back as one.
 */

import { once } from 'node:events';
import { GATEWAY_COMMANDS } from '../../src/cli/commands.ts';
import { exitWith } from '../../src/cli/exit-code.ts';
import { runProgram } from '../../src/cli/program.ts';
import { DEVELOPER_COMMANDS } from '../../tools/commands.ts';

/** The end of one command line. */
export interface LineRun {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

if (import.meta.main) {
  const [lines] = (await once(process, 'message')) as [readonly (readonly string[])[]];
  const runs: LineRun[] = [];
  for (const words of lines) runs.push(await runOf(words));
  process.send?.(runs, () => process.exit(0));
}

async function runOf(words: readonly string[]): Promise<LineRun> {
  const printed = { out: '', errors: '' };
  const { stdout, stderr } = process;
  const restore = [
    capture(stdout, (text) => (printed.out += text)),
    capture(stderr, (text) => (printed.errors += text)),
  ];
  process.exitCode = 0;
  try {
    await exitWith(() => runProgram(words, [DEVELOPER_COMMANDS, ...GATEWAY_COMMANDS]));
  } finally {
    for (const undo of restore) undo();
  }
  const code = Number(process.exitCode);
  process.exitCode = 0;
  return { code, ...printed };
}

function capture(stream: NodeJS.WriteStream, take: (text: string) => void): () => void {
  const { write } = stream;
  stream.write = (chunk: string | Uint8Array) => {
    take(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString());
    return true;
  };
  return () => {
    stream.write = write;
  };
}
