import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { acg } from './acg.ts';

const SERVICE = ['--service', 'injector', '--namespace', 'system'];

describe('acg injector', () => {
  for (const [args, message] of [
    [[], /--options is missing/],
    [['--options', 'x'], /--certificates is missing/],
    [['--options', 'x', '--certificates', 'x', '--client-name', 'x'], /--client-name belongs to --client-ca/],
    [['--options', 'x', '--certificates', 'x', '--port', '65536'], /--port must be a number from 0 to 65535/],
    [['--options', 'x', '--certificates', 'x', '--namespace', 'A'], /--namespace wants a name of Kubernetes/],
    [['--image', 'x'], /--image/],
    [['certificates'], /certificates/],
    [['certificate', ...SERVICE], /^--directory is missing$/m],
    [['certificate', ...SERVICE, '--directory', 'x', '--days', '1826'], /--days must be a number from 1 to 1825/],
  ] as const)
    it(`refuses ${args.join(' ') || 'no arguments'} as wrong usage`, async () => {
      await using ends = new AsyncDisposableStack();
      const folder = await temporaryDirectory(ends, 'injector-');
      const { code, errors } = await acg(folder, ['injector', ...args]);
      assert.equal(code, 64);
      assert.match(errors, message);
      assert.deepEqual(readdirSync(folder), []);
    });

  it('tells its usage', async () => {
    await using ends = new AsyncDisposableStack();
    const { code, lines } = await acg(await temporaryDirectory(ends, 'injector-'), ['injector', '--help']);
    assert.deepEqual([code, lines[0]?.startsWith('Usage: acg injector')], [0, true]);
  });

  it('does not start without its files, and names the argument and the file', async () => {
    await using ends = new AsyncDisposableStack();
    const folder = await temporaryDirectory(ends, 'injector-');
    const started = () => acg(folder, ['injector', '--options', 'options.yaml', '--certificates', 'tls']);
    const none = await started();
    assert.deepEqual([none.code, /--options: .*options\.yaml/.test(none.errors)], [78, true], none.errors);
    writeFileSync(join(folder, 'options.yaml'), 'image: 7\n');
    const wrong = await started();
    assert.deepEqual([wrong.code, /image: must be an image reference/.test(wrong.errors)], [78, true], wrong.errors);
    writeFileSync(join(folder, 'options.yaml'), '');
    const keyless = await started();
    assert.deepEqual([keyless.code, /--certificates: .*tls\.crt/.test(keyless.errors)], [78, true], keyless.errors);
  });
});

describe('acg injector certificate', () => {
  it('writes a pair and what it is trusted by, the key for its owner alone, and nothing else', async () => {
    await using ends = new AsyncDisposableStack();
    const folder = await temporaryDirectory(ends, 'injector-');
    const asked = ['injector', 'certificate', ...SERVICE, '--directory', 'tls', '--days', '7'];
    const { code, lines, errors } = await acg(folder, asked);
    assert.equal(code, 0, errors);
    assert.match(lines[0] ?? '', /DNS:injector\.system\.svc/);
    assert.deepEqual(readdirSync(join(folder, 'tls')).sort(), ['ca.crt', 'tls.crt', 'tls.key']);
    assert.equal(statSync(join(folder, 'tls', 'tls.key')).mode & 0o777, 0o600);
    const certificate = () => new X509Certificate(readFileSync(join(folder, 'tls', 'tls.crt')));
    const before = certificate();
    const days = (Date.parse(before.validTo) - Date.now()) / 86_400_000;
    assert.ok(days > 6.9 && days <= 7, `${days} days`);

    assert.match((await acg(folder, asked)).lines[1] ?? '', /the authority and the one before it/);
    assert.notEqual(certificate().serialNumber, before.serialNumber);
    const authorities = readFileSync(join(folder, 'tls', 'ca.crt'), 'utf8');
    assert.equal(authorities.match(/BEGIN CERTIFICATE/g)?.length, 2);
    assert.equal(statSync(join(folder, 'tls', 'tls.key')).mode & 0o777, 0o600);
  });
});
