/** A copy of the repository's sources into which the specs of "How to add" put their additions. */

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const ROOT = path.join(import.meta.dirname, '../..');
const COPIED = ['src', 'schemas', 'docs', 'spec', 'tools', 'deploy', 'verification', 'package.json', 'tsconfig.json'];

/** What one section of "How to add" tells a reader to do. */
export interface Addition {
  /** The bold words that begin the section. */
  readonly title: string;
  /** New files by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Changes by path. */
  readonly edits: Readonly<Record<string, (text: string) => string>>;
}

export interface PatchedCopy {
  readonly directory: string;
  /** Types of src and of what was added. @throws Error with the compiler's lines */
  compile(): Promise<void>;
  remove(): void;
}

/** Copies the sources, applies every addition, and writes what follows from the schema. */
export function patchedCopy(additions: readonly Addition[]): PatchedCopy {
  const directory = mkdtempSync(path.join(tmpdir(), 'acg-how-to-add-'));
  for (const name of COPIED) cpSync(path.join(ROOT, name), path.join(directory, name), { recursive: true });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(directory, 'node_modules'));
  // Specs of the copy start the programs that are unpacked there, and fetch none again.
  mkdirSync(path.join(ROOT, '.cache'), { recursive: true });
  symlinkSync(path.join(ROOT, '.cache'), path.join(directory, '.cache'));
  for (const { files = {}, edits } of additions) {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(directory, file)), { recursive: true });
      writeFileSync(path.join(directory, file), text, { flag: 'wx' });
    }
    for (const [file, edit] of Object.entries(edits)) {
      const at = path.join(directory, file);
      writeFileSync(at, edit(readFileSync(at, 'utf8')));
    }
  }
  execFileSync(process.execPath, ['tools/docs/configuration.ts', '--write'], { cwd: directory });
  return {
    directory,
    async compile() {
      const project = {
        extends: './tsconfig.json',
        include: ['src', 'spec/errors.spec.ts', 'spec/routes/refusals.ts'],
      };
      writeFileSync(path.join(directory, 'tsconfig.added.json'), JSON.stringify(project));
      const compiler = path.join(directory, 'node_modules/typescript/bin/tsc');
      const arguments_ = [compiler, '--project', 'tsconfig.added.json'];
      await promisify(execFile)(process.execPath, arguments_, { cwd: directory }).catch(
        ({ stdout }: { readonly stdout: string }) => assert.fail(`tsc: ${stdout}`),
      );
    },
    remove: () => rmSync(directory, { recursive: true }),
  };
}

/** Puts text behind a place that is there exactly once. */
export function behind(place: string, text: string): (source: string) => string {
  return (source) => sidesOf(source, place).join(`${place}${text}`);
}

/** Puts text before a place that is there exactly once. */
export function before(place: string, text: string): (source: string) => string {
  return (source) => sidesOf(source, place).join(`${text}${place}`);
}

function sidesOf(source: string, place: string): readonly string[] {
  const sides = source.split(place);
  assert.equal(sides.length, 2, `${place} is there once`);
  return sides;
}

/** Adds an import before the first one. */
export function importing(line: string): (source: string) => string {
  return (source) => {
    const at = source.search(/^import /m);
    assert.ok(at >= 0, 'there is an import');
    return `${source.slice(0, at)}${line}\n${source.slice(at)}`;
  };
}

/** Several edits of one file, in order. */
export function all(...edits: readonly ((source: string) => string)[]): (source: string) => string {
  return (source) => edits.reduce((text, edit) => edit(text), source);
}

/** A change of a JSON document. */
export function json(change: (document: JsonDocument) => void): (source: string) => string {
  return (source) => {
    const document = JSON.parse(source) as JsonDocument;
    change(document);
    return JSON.stringify(document);
  };
}

/** A JSON Schema as deep as these edits go. */
export interface JsonDocument {
  [member: string]: JsonDocument & unknown[] & string;
}
