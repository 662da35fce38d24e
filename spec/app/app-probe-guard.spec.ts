import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openAppProbes, soldTargets } from '../../src/app/open-routes.ts';
import { type Changes, load } from '../config/document/document.ts';
import { passing, resource } from './routes.ts';

const NAME = 'GATEWAY_APP_PROBE_READINESS';

/** Opens with a readiness probe of this URL. The base configuration sells GET /reports/{city}. */
const opened = (url: string, changes: Changes = {}) => openAppProbes({ [NAME]: url }, load(changes));

describe('the guard of sold paths before the probes of the merchant', () => {
  it('lets pass what is not sold, and what is free', () => {
    const free = resource('cities', 'GET', '/cities');
    for (const path of ['/', '/healthz', '/reports', '/reports/a/b', '/cities'])
      assert.equal(opened(`http://127.0.0.1:3000${path}`, free).readiness?.target, path);
  });

  for (const path of [
    '/reports/Berlin',
    '/REPORTS/x?y',
    '/reports/%42erlin',
    '/./reports/Berlin',
    '/reports//x',
    '/a/..;/reports/x',
  ])
    it(`refuses ${path}, with the name of the variable and what to do`, () =>
      assert.throws(
        () => opened(`http://127.0.0.1:3000${path}`),
        /GATEWAY_APP_PROBE_READINESS: is the path of something that is sold/,
      ));

  it('refuses it on a second port of the merchant, and whatever passes', () => {
    for (const changes of [{}, passing(), { 'resources.report.expose': ['http', 'origin'] }])
      for (const url of ['http://127.0.0.1:9090/reports/Berlin', 'https://127.0.0.1:8443/reports/Berlin'])
        assert.throws(() => opened(url, changes), /is the path of something that is sold/);
  });

  it('refuses the ports of the gateway, which would ask itself for ever', () => {
    for (const port of [8402, 8403])
      assert.throws(() => opened(`http://127.0.0.1:${port}/app-probe/readiness`), /names a port of the gateway/);
  });

  it('refuses what cannot be read, before the path is judged', () => {
    assert.throws(() => opened('http://10.0.0.1:3000/reports/Berlin'), /must name 127\.0\.0\.1/);
  });

  it('holds nothing where nothing is sold', () => {
    const free = { 'resources.report.pricing': { type: 'free' }, payments: undefined };
    assert.equal(soldTargets(load(free))('/reports/Berlin'), false);
  });
});
