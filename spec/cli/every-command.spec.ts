import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Command } from 'commander';
import { PACKAGE_COMMANDS } from '../../tools/commands.ts';
import { NO_CHAIN, worldConfig, writeConfig } from '../support/config.ts';
import { type LineRun, openShell } from './shell.ts';

/** A screen that shows a help as a whole. */
const SCREEN = { lines: 24, columns: 80 } as const;
/** The list of all commands, which grows with them. */
const MOST_OVERVIEW_LINES = 48;

/** What a command line must come to: one exit code, and a line that this is said in. */
interface Expected {
  readonly words: string;
  readonly code: number;
  readonly says: RegExp;
}

/** A command that reads no file that a user names, or asks no server. */
const NONE = undefined;
const REFUSED = /nowhere\.yaml cannot be read/;
const config = (command: string): Expected => ({
  words: `${command} --config nowhere.yaml`,
  code: 78,
  says: REFUSED,
});
const NO_KEYS = /^nowhere is no folder that mandate keys --out made/;
const NO_FILE = /^nowhere: there is no such file$/;

/** By command: a line that names a file which is not there. */
const MISSING_FILE: Readonly<Record<string, Expected | undefined>> = {
  serve: config('serve'),
  validate: config('validate'),
  healthcheck: config('healthcheck'),
  receipts: config('receipts'),
  events: { words: 'events --url http://127.0.0.1:1 --token-file nowhere', code: 66, says: NO_FILE },
  refunds: NONE,
  'refunds list': config('refunds list'),
  'refunds pay': config('refunds pay --all-due'),
  'refunds record': config(`refunds record receipt_1 0x${'1'.repeat(64)}`),
  // It tells what it finds as it tells everything: in its list.
  doctor: { words: 'doctor --config nowhere.yaml', code: 1, says: REFUSED },
  reconcile: config('reconcile --from-chain'),
  inject: { words: 'inject -f nowhere', code: 66, says: NO_FILE },
  injector: { words: 'injector --options nowhere --certificates nowhere', code: 78, says: /--options: .*nowhere/ },
  init: { words: 'init --out nowhere/config.yaml', code: 66, says: /^nowhere: there is no such file$/ },
  dev: config('dev'),
  pay: { words: 'pay http://127.0.0.1:1/ --data nowhere', code: 66, says: NO_FILE },
  wallet: { words: 'wallet --allow 127.0.0.1:1 --key-file nowhere', code: 66, says: NO_FILE },
  'verify-receipt': { words: 'verify-receipt nowhere', code: 66, says: NO_FILE },
  import: { words: 'import nowhere', code: 66, says: NO_FILE },
  'server-json': config('server-json'),
  mandate: NONE,
  'mandate keys': NONE,
  'mandate direct': { words: 'mandate direct --keys nowhere --challenge nowhere', code: 66, says: NO_KEYS },
  'mandate open': { words: 'mandate open --keys nowhere --out o --challenge nowhere', code: 66, says: NO_KEYS },
  'mandate close': { words: 'mandate close --keys nowhere --open nowhere', code: 66, says: NO_KEYS },
  // It takes the text itself.
  'mandate show': NONE,
  vectors: NONE,
  'vectors ap2': { words: 'vectors ap2 nowhere', code: 66, says: NO_FILE },
  'vectors acp': { words: 'vectors acp nowhere', code: 66, says: NO_FILE },
};

const NOTHING_LISTENS = /^http:\/\/127\.0\.0\.1:1 does not answer: nothing listens there$/;
const at = (command: string): Expected => ({
  words: `${command} --url http://127.0.0.1:1`,
  code: 69,
  says: NOTHING_LISTENS,
});

/** By command: a line that needs a server which is away. `away.yaml` names only such. */
const UNREACHABLE: Readonly<Record<string, Expected | undefined>> = {
  // It starts, and says so in its readiness.
  serve: NONE,
  validate: NONE,
  healthcheck: { words: 'healthcheck --config away.yaml', code: 69, says: /^http:\/\/127\.0\.0\.1:2 does not/ },
  receipts: at('receipts'),
  events: at('events --follow'),
  refunds: NONE,
  'refunds list': at('refunds list'),
  'refunds pay': { words: 'refunds pay --all-due --config away.yaml', code: 69, says: /^the store \(redis\) cannot/ },
  'refunds record': {
    words: `refunds record receipt_1 0x${'1'.repeat(64)} --config away.yaml`,
    code: 69,
    says: /^the store \(redis\) cannot/,
  },
  doctor: { words: 'doctor --config away.yaml', code: 1, says: /"status": "FAIL"/ },
  reconcile: { words: 'reconcile --from-chain --config away.yaml', code: 69, says: /ECONNREFUSED 127\.0\.0\.1:1$/ },
  inject: NONE,
  injector: NONE,
  init: NONE,
  // It starts, and says so.
  dev: NONE,
  pay: { words: 'pay http://127.0.0.1:1/ --yes', code: 69, says: /^http:\/\/127\.0\.0\.1:1\/ does not answer/ },
  // It starts, and its tools say so.
  wallet: NONE,
  'verify-receipt': NONE,
  import: {
    words: 'import http://127.0.0.1:2/',
    code: 69,
    says: /^http:\/\/127\.0\.0\.1:2\/ cannot be read \(ECONNREFUSED\)$/,
  },
  'server-json': NONE,
  mandate: NONE,
  'mandate keys': NONE,
  'mandate direct': NONE,
  'mandate open': NONE,
  'mandate close': NONE,
  'mandate show': NONE,
  vectors: NONE,
  'vectors ap2': NONE,
  'vectors acp': NONE,
};

const folder = mkdtempSync(join(tmpdir(), 'acg-commands-'));
const ends = new AsyncDisposableStack();
const shell = openShell(ends);
after(async () => {
  await ends.disposeAsync();
  rmSync(folder, { recursive: true, force: true });
});
const commands = await definitions();
const names = [...commands.keys()];

/** Every command and subcommand by the words that run it, found in the definitions. */
async function definitions(): Promise<ReadonlyMap<string, Command>> {
  const found = new Map<string, Command>();
  for (const { name, load } of PACKAGE_COMMANDS.flatMap((group) => group.commands)) {
    const command = await load();
    found.set(name, command);
    for (const sub of command.commands) found.set(`${name} ${sub.name()}`, sub);
  }
  return found;
}

/** Runs a line in a folder that holds nothing but `away.yaml`. */
function run(line: string): Promise<LineRun> {
  const env = { ACG_ADMIN_TOKEN: 'any', LOG_LEVEL: 'silent' };
  return shell.run(folder, line.split(' ').filter(Boolean), { env });
}

function optionsOf(command: Command): readonly string[] {
  return ['--help', ...command.options.flatMap(({ long, short }) => [long, short])].filter(
    (flag) => flag !== undefined && flag !== null,
  );
}

describe('the help of every command', () => {
  for (const name of names)
    it(`${name}: fits a screen, and has an example that it takes`, async () => {
      const { code, text, errors } = await run(`${name} --help`);
      assert.deepEqual([code, errors], [0, '']);
      const lines = text.trimEnd().split('\n');
      assert.ok(lines.length <= SCREEN.lines, `${lines.length} lines`);
      for (const line of lines) assert.ok(line.length <= SCREEN.columns, line);
      const [, example = ''] = /\nExample:\n {2}(.+)\n$/.exec(text) ?? [];
      const [, words = ''] = new RegExp(`\\bacg ${name}((?: [^|<>]*)?)`).exec(example) ?? assert.fail(example);
      for (const [flag] of words.matchAll(/(?<= )--?[a-z][a-z-]*/g))
        assert.ok(takes(name, flag, words), `${flag} in ${example}`);
    });

  /** The example of a group is one of its subcommands. */
  function takes(name: string, flag: string, words: string): boolean {
    const command = commands.get(`${name} ${words.trim().split(' ')[0]}`) ?? commands.get(name);
    return command !== undefined && optionsOf(command).includes(flag);
  }

  it('of all together: every command in one line, and the exit codes', async () => {
    const { code, text } = await run('--help');
    assert.equal(code, 0);
    const lines = text.trimEnd().split('\n');
    assert.ok(lines.length <= MOST_OVERVIEW_LINES, `${lines.length} lines`);
    for (const line of lines) assert.ok(line.length <= SCREEN.columns, line);
    for (const name of names.filter((words) => !words.includes(' ')))
      assert.ok(
        lines.some((line) => line.startsWith(`  ${name} `)),
        name,
      );
    for (const exitCode of [0, 1, 64, 66, 69, 78]) assert.match(text, new RegExp(`\\b${exitCode}\\b`));
  });
});

describe('a mistyped option of every command', () => {
  /** The second letter is missing: `--cnfig`. */
  const mistyped = (flag: string) => `--${flag.slice(2, 3)}${flag.slice(4)}`;
  const meant = (name: string) =>
    optionsOf(commands.get(name) ?? assert.fail(name)).findLast((flag) => flag.length > 5);
  for (const name of names)
    it(`${name}: one line with the likely one, and exit code 64`, async () => {
      const { code, text, errors } = await run(`${name} ${mistyped(meant(name) ?? '')}`);
      assert.deepEqual([code, text], [64, '']);
      assert.match(
        errors,
        new RegExp(`^unknown option '--.*' \\(did you mean ${meant(name)}\\?\\); acg ${name} --help .*\\n$`),
      );
    });

  it('and a mistyped command: the same', async () => {
    for (const [line, says] of [
      ['sell', 'unknown command sell; acg --help lists the commands\n'],
      ['reciepts', 'unknown command reciepts; did you mean receipts?\n'],
      ['refunds lost', 'unknown command refunds lost; did you mean list?\n'],
    ] as const) {
      const { code, errors } = await run(line);
      assert.deepEqual([code, errors], [64, says]);
    }
  });
});

for (const [what, table] of [
  ['a file that is not there', MISSING_FILE],
  ['a server that is away', UNREACHABLE],
] as const)
  describe(`${what}, for every command`, () => {
    it('has a row here: a new command needs one', () => assert.deepEqual(names.toSorted(), Object.keys(table).sort()));

    for (const [name, expected] of Object.entries(table)) {
      if (expected === undefined) continue;
      const { words, code, says } = expected;
      it(`${words}: one line, and exit code ${code}`, async () => {
        const { text, errors, ...ended } = await run(words);
        assert.equal(ended.code, code, errors);
        if (name === 'doctor') {
          assert.match(text, says);
          return;
        }
        // The problems of a configuration stand below a heading.
        const said = errors.replace(/^the configuration is refused:\n {2}/, '').trimEnd();
        assert.match(said, says);
        assert.equal(said.split('\n').length, 1, said);
        assert.equal(text, '');
      });
    }
  });

/** Names servers that are away, and none that is there. */
before(async () => {
  const parts = { chain: NO_CHAIN, backendUrl: 'http://127.0.0.1:9', ports: { agents: 1, management: 2 } };
  const storage = { redis: { url: 'redis://127.0.0.1:1' } };
  const facilitator = { mode: 'remote', url: 'http://127.0.0.1:1' } as const;
  await writeConfig(join(folder, 'away.yaml'), worldConfig({ ...parts, storage, facilitator }));
});
