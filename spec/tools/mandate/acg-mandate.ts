/** Runs `acg mandate` in folders of its own. */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `acg mandate` as a shell would. */
export function acgMandate(args: readonly string[], stdin = ''): Promise<Run> {
  return new Promise((done) => {
    const child = execFile(process.execPath, ['tools/acg.ts', 'mandate', ...args], (error, stdout, stderr) =>
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
    child.stdin?.end(stdin);
  });
}

/** A new folder, and its removal. */
export function folder(): { readonly at: (name: string) => string; readonly remove: () => void } {
  const directory = mkdtempSync(path.join(tmpdir(), 'acg-mandate-'));
  return { at: (name) => path.join(directory, name), remove: () => rmSync(directory, { recursive: true }) };
}
