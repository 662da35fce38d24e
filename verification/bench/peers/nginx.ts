/** nginx as a reverse proxy, as a contestant. */

import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { debianProgram, type Program } from '../../../spec/support/debian.ts';
import { type Contestant, NotAvailable, PEER_QUESTION } from '../contestant.ts';

const FOLDER = 'nginx';
const PATH = 'usr/sbin/nginx';
const UNPACKED = join(import.meta.dirname, '../../../.cache', FOLDER, PATH);

/** One worker with keep-alive to the backend, with its access log on: what a sidecar in C does. */
export const nginx: Contestant = {
  id: 'nginx',
  suite: 'free',
  title: `nginx${version()}, reverse proxy with keep-alive, access log, one worker`,
  question: PEER_QUESTION,
  readyPath: '/',
  async program({ port, backendUrl, folder }) {
    const { program, env } = await installed();
    const configuration = join(folder, 'nginx.conf');
    await mkdir(join(folder, 'temporary'));
    await writeFile(configuration, configured(port, new URL(backendUrl).host, folder));
    return { command: program, args: ['-p', folder, '-e', 'stderr', '-c', configuration], env };
  },
};

async function installed(): Promise<Program> {
  try {
    return await debianProgram({
      name: 'nginx',
      variable: 'BENCH_NGINX',
      folder: FOLDER,
      packages: { names: ['nginx'] },
      path: PATH,
      shows: '-v',
    });
  } catch (error) {
    throw new NotAvailable(error instanceof Error ? error.message : String(error));
  }
}

/** As far as one is there already. */
function version(): string {
  for (const program of [process.env['BENCH_NGINX'], 'nginx', UNPACKED]) {
    if (program === undefined) continue;
    const { stderr, status } = spawnSync(program, ['-v'], { encoding: 'utf8' });
    if (status === 0) return ` ${stderr.split('/')[1]?.trim() ?? ''}`;
  }
  return '';
}

function configured(port: number, backend: string, folder: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `  ${kind}_temp_path ${folder}/temporary/${kind};`,
  );
  return [
    'daemon off;',
    // One process: the meter sees all of it.
    'master_process off;',
    `pid ${folder}/nginx.pid;`,
    'events { worker_connections 4096; }',
    'http {',
    ...temporary,
    '  access_log /dev/null combined;',
    '  keepalive_requests 1000000;',
    '  keepalive_timeout 120s;',
    `  upstream backend { server ${backend}; keepalive 64; keepalive_requests 1000000; }`,
    '  server {',
    `    listen 127.0.0.1:${port} backlog=4096;`,
    '    location / {',
    '      proxy_pass http://backend;',
    '      proxy_http_version 1.1;',
    '      proxy_set_header Connection "";',
    '    }',
    '  }',
    '}',
    '',
  ].join('\n');
}
