/** The process of `shell.ts`: runs each command line that comes, and tells how it ended. */

import { exitWith, runProgram } from '../../src/cli/program.ts';
import { PACKAGE_COMMANDS } from '../../tools/commands.ts';
import type { Line, LineEnd } from './shell.ts';

process.on('message', async (line: Line) => process.send?.(await runOf(line)));

async function runOf({ words, env, folder, isTerminal }: Line): Promise<LineEnd> {
  process.chdir(folder);
  process.env = { ...env };
  Object.assign(process.stdout, { isTTY: isTerminal });
  let text = '';
  let errors = '';
  const releases = [
    capture(process.stdout, (chunk) => {
      text += chunk;
    }),
    capture(process.stderr, (chunk) => {
      errors += chunk;
    }),
  ];
  process.exitCode = 0;
  await exitWith(() => runProgram(words, PACKAGE_COMMANDS));
  for (const release of releases) release();
  const code = Number(process.exitCode);
  process.exitCode = 0;
  return { code, text, errors };
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
