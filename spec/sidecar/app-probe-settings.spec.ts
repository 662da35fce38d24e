import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ConfigError, ProblemList } from '../../src/problems/problem.ts';
import { type AppProbeSettings, readAppProbes } from '../../src/sidecar/app-probe-settings.ts';

const LIVENESS = 'GATEWAY_APP_PROBE_LIVENESS';

function read(env: Readonly<Record<string, string>>): AppProbeSettings {
  const problems = new ProblemList();
  const probes = readAppProbes(env, problems);
  problems.throwIfAny();
  return probes;
}

describe('the probes of the merchant in the environment', () => {
  it('are none where none is set', () => assert.deepEqual(read({ GATEWAY_APP_PRESTOP: 'x' }), {}));

  it('are read with scheme, port, path, query and headers in their order', () => {
    const probes = read({
      [LIVENESS]: 'http://127.0.0.1:8080/',
      GATEWAY_APP_PROBE_READINESS: 'https://127.0.0.1:65535/ready?deep=1%20x',
      GATEWAY_APP_PROBE_READINESS_HEADERS: 'Host: shop.example\nX-Twice: one\nX-Twice: two: three\nAccept: ',
      GATEWAY_APP_PROBE_STARTUP: 'http://127.0.0.1:1/$(NAME)',
    });
    assert.deepEqual(probes, {
      liveness: { scheme: 'http', port: 8080, target: '/', headers: [] },
      readiness: {
        ...{ scheme: 'https', port: 65_535, target: '/ready?deep=1%20x' },
        headers: [
          ['Host', 'shop.example'],
          ['X-Twice', 'one'],
          ['X-Twice', 'two: three'],
          ['Accept', ''],
        ],
      },
      startup: { scheme: 'http', port: 1, target: '/$(NAME)', headers: [] },
    });
  });

  const NONSENSE: readonly (readonly [text: string, message: RegExp])[] = [
    ['', /must be a URL such as/],
    ['/healthz', /must be a URL such as/],
    ['ftp://127.0.0.1:8080/', /must be a URL such as/],
    ['HTTP://127.0.0.1:8080/', /must be a URL such as/],
    ['http://127.0.0.1:8080', /must be a URL such as/],
    ['http://169.254.169.254:80/latest', /must name 127\.0\.0\.1 and a port/],
    ['http://127.0.0.1.example:80/', /must name 127\.0\.0\.1 and a port/],
    ['http://user@127.0.0.1:80/', /must name 127\.0\.0\.1 and a port/],
    ['http://127.0.0.1/', /must name 127\.0\.0\.1 and a port/],
    ['http://127.0.0.1:0/', /must name 127\.0\.0\.1 and a port/],
    ['http://127.0.0.1:080/', /must name 127\.0\.0\.1 and a port/],
    ['http://127.0.0.1:65536/', /must name 127\.0\.0\.1 and a port/],
    [`http://127.0.0.1:80/${'a'.repeat(2_048)}`, /must have a path of at most 2,048 characters/],
  ];
  for (const [text, message] of NONSENSE)
    it(`are refused as ${JSON.stringify(text.slice(0, 40))}, in words that do not repeat it`, () => {
      assert.throws(
        () => read({ [LIVENESS]: text }),
        (error: unknown) => {
          assert.ok(error instanceof ConfigError);
          assert.deepEqual(
            error.problems.map(({ path }) => path),
            [LIVENESS],
          );
          assert.match(error.problems[0]?.message ?? '', message);
          assert.doesNotMatch(error.message, /169\.254|user@|aaaa/);
          return true;
        },
      );
    });

  it('are asked with the request target that the kubelet would send', () => {
    for (const [path, target] of [
      ['/a b', '/a%20b'],
      ['/größe?q=日', '/gr%C3%B6%C3%9Fe?q=%E6%97%A5'],
      ['/a#b', '/a'],
      ['/a\r\nX: y', '/a%0D%0AX:%20y'],
      ['/"quoted"/%2F\\', '/"quoted"/%2F\\'],
    ])
      assert.equal(read({ [LIVENESS]: `http://127.0.0.1:80${path}` }).liveness?.target, target);
  });

  it('send the bytes of a header in UTF-8', () => {
    const probes = read({ [LIVENESS]: 'http://127.0.0.1:80/', [`${LIVENESS}_HEADERS`]: 'X: \u00e9 "\t"' });
    assert.deepEqual(probes.liveness?.headers, [['X', '\u00c3\u00a9 "\t"']]);
  });

  it('take a path up to the limit', () => {
    const target = `/${'a'.repeat(2_047)}`;
    assert.equal(read({ [LIVENESS]: `http://127.0.0.1:80${target}` }).liveness?.target, target);
  });

  it('are refused with a line that is no header, and with headers of no probe', () => {
    const url = { [LIVENESS]: 'http://127.0.0.1:80/' };
    for (const headers of ['', 'X', 'X: a\n', 'X y: a', ': a', 'X: a\rb', 'X: \u0085'])
      assert.throws(() => read({ ...url, [`${LIVENESS}_HEADERS`]: headers }), /_HEADERS: must have one header a line/);
    assert.throws(() => read({ [`${LIVENESS}_HEADERS`]: 'X: a' }), /_HEADERS: has no probe/);
  });
});
