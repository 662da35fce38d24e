/** `acg dev` in processes of their own. */

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, beforeEach } from 'node:test';
import { acgOfCheckout, type CommandRun, TOOLS } from '../../cli/acg.ts';
import { freePorts } from '../../support/ports.ts';
import { childrenOf, isThere, type Program, startProgram, until } from '../../support/program.ts';

/** A world that runs, or that ends before it does. */
export interface DevWorld extends Program {
  readonly ports: Readonly<Record<'agents' | 'management' | 'rpc', number>>;
  readonly baseUrl: string;
}

/** Worlds of one spec, in a folder that goes away with it. */
export interface DevWorlds {
  /** The working directory of all of them. */
  readonly folder: string;
  /** What is left of their temporary files. */
  remains(): readonly string[];
  start(args?: readonly string[], env?: Readonly<Record<string, string>>): Promise<DevWorld>;
  /** The same, once it has said what there is. */
  introduced(args?: readonly string[], env?: Readonly<Record<string, string>>): Promise<DevWorld>;
  acg(args: readonly string[]): Promise<CommandRun>;
}

/** Ends what a test has started, and checks that none of it outlives `acg dev`. */
export function devWorlds(): DevWorlds {
  const folder = mkdtempSync(join(tmpdir(), 'acg-dev-'));
  let temporary = '';
  let started: DevWorld[] = [];
  beforeEach(() => {
    temporary = mkdtempSync(join(folder, 'tmp-'));
  });
  afterEach(async () => {
    const children = started.flatMap(({ child }) => childrenOf(child));
    for (const { child } of started) child.kill('SIGKILL');
    started = [];
    await until('the end of all processes', () => !children.some(isThere));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const start: DevWorlds['start'] = async (args = [], env = {}) => {
    const [agents = 0, management = 0, rpc = 0] = await freePorts(3);
    const ports = ['--port', agents, '--management-port', management, '--rpc-port', rpc].map(String);
    // What is given last counts.
    const options = ['dev', ...ports, ...args];
    const program = startProgram(TOOLS, options, { cwd: folder, env: { TMPDIR: temporary, ...env } });
    const world = { ...program, ports: { agents, management, rpc }, baseUrl: `http://127.0.0.1:${agents}` };
    started.push(world);
    return world;
  };
  return {
    folder,
    remains: () => readdirSync(temporary),
    start,
    introduced: async (args, env) => {
      const world = await start(args, env);
      await until('the introduction', () => {
        assert.equal(world.child.exitCode, null, world.errors());
        return `${world.printed()}${world.errors()}`.includes('Ctrl-C ends everything');
      });
      return world;
    },
    acg: (args) => acgOfCheckout(folder, args),
  };
}
