import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { acg } from './acg.ts';

describe('acg injector', () => {
  for (const [args, message] of [
    [[], /--options is missing/],
    [['--options', 'x'], /--certificates is missing/],
    [['--options', 'x', '--certificates', 'x', '--client-name', 'x'], /--client-name belongs to --client-ca/],
    [['--options', 'x', '--certificates', 'x', '--port', '65536'], /--port must be a number from 0 to 65535/],
    [['--options', 'x', '--certificates', 'x', '--namespace', 'A'], /--namespace wants a name of Kubernetes/],
    [['--image', 'x'], /--image/],
    [['certificates'], /certificates/],
  ] as const)
    it(`refuses ${args.join(' ') || 'no arguments'} as wrong usage`, async () => {
      await using ends = new AsyncDisposableStack();
      const folder = await temporaryDirectory(ends, 'injector-');
      const { code, errors } = await acg(folder, ['injector', ...args]);
      assert.equal(code, 64);
      assert.match(errors, message);
      assert.deepEqual(readdirSync(folder), []);
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
    const lacks = /--certificates: tls lacks tls\.crt or tls\.key; mount a Secret .* cert-manager provides/;
    assert.deepEqual([keyless.code, lacks.test(keyless.errors)], [78, true], keyless.errors);
  });
});
