/** Runs the commands of a document from top to bottom in one shell, in a copy of a checkout. */

import { spawn } from 'node:child_process';
import { cpSync, globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseDocument } from 'yaml';
import { ended } from '../../tools/local-world/child.ts';
import { programFile } from '../support/program.ts';
import type { Block } from './blocks.ts';
import type { Ports } from './world.ts';

const ROOT = join(import.meta.dirname, '../..');
/** What commands read. `deploy` is copied, because one of its scripts writes beside itself. */
const LINKED = ['node_modules', 'package.json', 'schemas'];
/** What they run. */
const PROGRAMS = ['spec', 'src', 'tools'];
/** Stands in the output before what a block prints; no command prints it. */
const MARK = '\u001e';

/** What a block printed. */
export interface Printed {
  readonly block: Block;
  readonly out: string;
  readonly errors: string;
}

/** Where a session runs, and with what. */
export interface Place {
  /** Made by `layCheckout`. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly ports: Ports;
  fill(text: string): string;
}

/** How a session ended. */
export interface SessionEnd {
  readonly code: number | null;
  /** Of the blocks that were begun. */
  readonly printed: readonly Printed[];
  /** Whether something that the blocks started still ran behind the last one. */
  readonly leftRunning: boolean;
}

/** Lays out the files of a checkout in an empty folder, its examples with `fill`. */
export function layCheckout({ folder, fill }: Pick<Place, 'folder' | 'fill'>): void {
  for (const name of LINKED) symlinkSync(join(ROOT, name), join(folder, name));
  for (const name of PROGRAMS) symlinkSync(programFile(name), join(folder, name));
  const secrets = /\/secrets\/(?:gateway|redis)$/;
  cpSync(join(ROOT, 'deploy'), join(folder, 'deploy'), { recursive: true, filter: (source) => !secrets.test(source) });
  for (const example of globSync('deploy/examples/**/config.yaml', { cwd: folder }))
    writeFileSync(join(folder, example), fill(readFileSync(join(folder, example), 'utf8')));
}

/**
 * Runs blocks in their order: those of the shell as they are, those that are files by writing and
 * checking them. Ends what they left running.
 */
export async function runSession(blocks: readonly Block[], place: Place): Promise<SessionEnd> {
  const steps = blocks.map((block, index) => `step ${index}\n${scriptOf(block, place)}`);
  const shell = spawn('bash', ['-c', [PRELUDE, ...steps].join('\n')], {
    cwd: place.folder,
    env: place.env,
    // A process group of its own, which is ended with all that is left.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = new Promise((resolve) => shell.once('close', resolve));
  const [out, errors]: [string[], string[]] = [[], []];
  shell.stdout.setEncoding('utf8').on('data', (text: string) => out.push(text));
  shell.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text));
  const { code } = await ended(shell);
  const leftRunning = endGroup(shell.pid);
  await closed;
  const [printed, complained] = [byStep(out.join('')), byStep(errors.join(''))];
  const begun = blocks.filter((_, index) => printed.has(index));
  return {
    code,
    printed: begun.map((block, index) => ({
      block,
      out: printed.get(index) ?? '',
      errors: complained.get(index) ?? '',
    })),
    leftRunning,
  };
}

/**
 * A pipe fails when any part of it fails. The documents call the program `acg`; npm in front of it
 * would take as long as the program. `served` waits for a gateway that the line before has started.
 */
const PRELUDE = `
set -eo pipefail
acg() { node '${programFile('tools/acg.ts')}' "$@"; }
step() { printf '${MARK}%s\\n' "$1"; printf '${MARK}%s\\n' "$1" >&2; }
served() {
  for _ in $(seq 600); do curl -sf "http://127.0.0.1:$1/ready" > served.json && return; sleep 0.1; done
  cat serve.log >&2; return 1
}
`;

/** A reader gives it a terminal of its own. */
const SERVES = /^(?!.*&\s*(?:#.*)?$)((?:npm run -s acg --|acg) (?:serve|dev)\b[^#\n]*).*$/gm;
/** Listens on ports of its own. */
const DEV = /\bacg dev\b/g;
/** A stream that a reader ends: its first line is enough. */
const STREAMS = /^curl -sN\b[^#\n]*/gm;
/** A command that is refused says so in its comment, with the code that it exits with. */
const REFUSED = /^([^#\n]*?)\s*#.*\bexit code (\d+).*$/gm;

function scriptOf({ language, detail, text }: Block, { ports, fill }: Place): string {
  if (language === 'sh')
    return fill(text)
      .replaceAll(DEV, `acg dev --rpc-port 0 --port ${ports.agents} --management-port ${ports.management}`)
      .replaceAll(REFUSED, '{ $1; } && exit 1 || [ $? -eq $2 ]')
      .replaceAll(STREAMS, '{ $& || true; } | head -n 1')
      .replaceAll(SERVES, `$1 > serve.log 2>&1 & served ${ports.management}`);
  if (detail === undefined) throw new Error(`a block of ${language} that is run must name its file`);
  const kustomized = detail.endsWith('kustomization.yaml');
  const check = kustomized ? `kubectl kustomize ${dirname(detail)} > rendered.yaml` : `acg validate --config ${detail}`;
  const content = kustomized ? fill(text) : onPorts(fill(text), ports);
  return `mkdir -p ${dirname(detail)}\ncat > ${detail} <<'END_OF_FILE'\n${content}END_OF_FILE\n${check}`;
}

/** A configuration that listens on these ports unless it names others. */
function onPorts(text: string, { agents, management }: Ports): string {
  const document = parseDocument(text);
  for (const [section, port] of [
    ['server', agents],
    ['management', management],
  ] as const)
    if (!document.hasIn([section, 'port'])) document.setIn([section, 'port'], port);
  return document.toString({ lineWidth: 0 });
}

function byStep(output: string): ReadonlyMap<number, string> {
  return new Map(
    output
      .split(MARK)
      .slice(1)
      .map((part) => {
        const end = part.indexOf('\n');
        return [Number(part.slice(0, end)), part.slice(end + 1)] as const;
      }),
  );
}

/** @returns whether anything was left in it */
function endGroup(leader: number | undefined): boolean {
  try {
    return leader !== undefined && process.kill(-leader, 'SIGKILL');
  } catch {
    return false;
  }
}
