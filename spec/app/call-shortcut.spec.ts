import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Request, Response } from 'express';
import { callShortcut, INVOKE_PATH } from '../../src/app/call-shortcut.ts';

const RES = {} as Response;

/** The handlers that take a request, and the id that they find; undefined: the router takes it. */
function taken(method: string, url: string) {
  const ran: string[] = [];
  const note = (name: string) => (_req: Request, _res: Response, next: () => void) => {
    ran.push(name);
    next();
  };
  const mounts = [
    { paths: [INVOKE_PATH], handlers: [note('invoke')] },
    { paths: ['/a2a', '/a2a/'], handlers: [note('a2a')] },
  ];
  const req = { method, url, params: {} } as Request;
  const take = callShortcut([note('first'), note('second')], mounts, assert.fail)(req);
  if (take === undefined) return undefined;
  take(req, RES, () => ran.push('next'));
  return [...ran, req.params['id'], req.route.path];
}

describe('the shortcut of a call', () => {
  it('runs what every request passes, then the handlers of the adapter', () => {
    assert.deepEqual(taken('POST', '/a2a'), ['first', 'second', 'a2a', 'next', undefined, ['/a2a', '/a2a/']]);
    assert.deepEqual(taken('POST', '/a2a/'), ['first', 'second', 'a2a', 'next', undefined, ['/a2a', '/a2a/']]);
  });

  it('gives the adapter the id of the resource, and notes the pattern of its route', () => {
    const id = 'a.b-C_9';
    assert.deepEqual(taken('POST', `/api/resources/${id}/invoke`), [
      'first',
      'second',
      'invoke',
      'next',
      id,
      [INVOKE_PATH],
    ]);
  });

  for (const url of [
    '/api/resources/a%2fb/invoke',
    '/api/resources/a/b/invoke',
    '/api/resources//invoke',
    '/api/resources/invoke',
    '/api/resources/:id/invoke',
    '/api/resources/a/invoke?',
    '/api/resources/a/invoke/',
    '/API/resources/a/invoke',
    '/a2a//',
    '/a2a?x',
    '/A2A',
  ])
    it(`leaves ${url} to the router`, () => assert.equal(taken('POST', url), undefined));

  it('leaves every other method to the router', () => {
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'post']) assert.equal(taken(method, '/a2a'), undefined);
  });
});
