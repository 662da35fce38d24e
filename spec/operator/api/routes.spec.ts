import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import express, { type RequestHandler, Router } from 'express';
import { authenticate } from '../../../src/operator/api/routes.ts';
import { ask } from '../../e2e/ask.ts';

describe('operator routes without a configured token', () => {
  it('leave their router as unknown routes do', async () => {
    const passed: string[] = [];
    const step =
      (name: string): RequestHandler =>
      (_req, _res, next) => {
        passed.push(name);
        next();
      };
    const router = Router();
    router.all('/closed', authenticate([]), step('behind'));
    const app = express();
    app.use(router, step('after'), (_req, res) => res.end());
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await ask(`http://127.0.0.1:${port}`, { method: 'GET', path: '/closed', headers: {} });
    server.close();
    assert.deepEqual(passed, ['after']);
  });
});
