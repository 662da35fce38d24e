import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { ended } from '../support/child.ts';
import { freePorts } from '../support/ports.ts';

const EXAMPLE = 'deploy/examples/mandates';
/** The ports of the example, which may be taken where tests run. */
const PORTS: readonly string[] = ['8402', '8403', '3000'];
const DEADLINE_MS = 120_000;

/** The commands of the README as they stand, in their order, on ports that are free. */
function commands(directory: string, ports: readonly number[]): string {
  const moved = (text: string): string =>
    text.replaceAll(new RegExp(PORTS.join('|'), 'g'), (port) => String(ports[PORTS.indexOf(port)]));
  const config = path.join(directory, 'config.yaml');
  writeFileSync(config, moved(readFileSync(`${EXAMPLE}/config.yaml`, 'utf8')));
  const blocks = [...readFileSync(`${EXAMPLE}/README.md`, 'utf8').matchAll(/```sh\n([\s\S]*?)```/g)];
  assert.ok(blocks.length >= 8, 'the README has commands');
  return moved(blocks.map(([, block]) => block).join('\n')).replaceAll(`${EXAMPLE}/config.yaml`, config);
}

describe('the example of mandates', () => {
  it('does what its README says', { timeout: DEADLINE_MS }, async () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'acg-example-'));
    const ports = await freePorts(PORTS.length);
    const script = `set -e\n${commands(directory, ports)}`;
    // Nobody routes to this gateway, so it need not wait before it ends. A group of its own: whatever is left is ended with it.
    const env = { ...process.env, GATEWAY_DRAIN_SECONDS: '0' };
    const shell = spawn('bash', ['-c', script], { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, errors]: [string[], string[]] = [[], []];
    shell.stdout.setEncoding('utf8').on('data', (text: string) => out.push(text));
    shell.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text));
    const { code } = await ended(shell);
    const left = await Promise.all(ports.map((port) => answers(port)));
    endGroup(shell.pid);
    rmSync(directory, { recursive: true });
    const said = out.join('');
    assert.equal(code, 0, `${said}\n${errors.join('')}`);
    assert.deepEqual(left, [false, false, false], 'the last command closes the shop');
    const wanted = [
      'ap2 mandates for 1 of 1 resources (issuers: 1)',
      '"authorizationProviders":[{"name":"ap2","status":"pass"}]',
      '"code":"AUTHORIZATION_REQUIRED"',
      'Decoded, not verified.',
      'HTTP/1.1 200 OK',
      'agent-authorization-receipt: ',
      '{"report":"/reports/Berlin"}',
      '"reason":"replayed"',
      '"reason":"input_mismatch"',
      '"reason":"open_mandate_spent"',
    ];
    let from = 0;
    for (const text of wanted) {
      const at = said.indexOf(text, from);
      assert.ok(at >= 0, `${text} is not in its place:\n${said.slice(from)}`);
      from = at;
    }
  });
});

async function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    () => true,
    () => false,
  );
}

function endGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL');
  } catch {
    // All of them had ended by themselves.
  }
}
