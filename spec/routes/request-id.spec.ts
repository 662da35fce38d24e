import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pathOf, ROUTES, type Route } from './table.ts';
import { type Sent, send, sharedRoutes } from './world.ts';

/** How an id begins that the caller did not choose. */
const prefixOf = ({ path }: Route): string => /^\/(mcp|a2a|acp)(?:\/?$|\/checkout)/.exec(path)?.[1] ?? 'req';

const LEGAL = ['my-id:1.2_3', 'x', 'x'.repeat(64), 'constructor', '__proto__'];
const ILLEGAL: readonly (string | string[])[] = [
  'x'.repeat(65),
  '',
  'a b',
  'a\tb',
  '{"a"}',
  'a,b',
  '"quoted"',
  '<script>',
  Buffer.from('ü').toString('latin1'),
  ['one', 'two'],
  ['same', 'same'],
];

describe('the request id of an answer', () => {
  const world = sharedRoutes();
  const idOf = async (route: Route, id: string | string[] | undefined, method = route.method as string) => {
    const { headers, ...sent } = route.sent();
    const given: Sent['headers'] = id === undefined ? {} : { 'x-request-id': id };
    const path = await pathOf(route, world().agents);
    const answer = await send(world()[route.app], method, path, {
      ...(method === route.method ? sent : {}),
      headers: { ...headers, ...given },
    });
    return String(answer.headers['x-request-id']);
  };

  for (const route of ROUTES.filter(({ path }) => !path.startsWith('/console/')))
    it(`${route.method} ${route.path} (${route.app}) is the caller's when it is legal, else a new one`, async () => {
      const minted = new RegExp(`^${prefixOf(route)}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`);
      for (const id of LEGAL) assert.equal(await idOf(route, id), id);
      for (const id of ILLEGAL) assert.match(await idOf(route, id), minted, String(id));
      assert.match(await idOf(route, undefined), minted);
      assert.notEqual(await idOf(route, undefined), await idOf(route, undefined));
      assert.equal(await idOf(route, 'of-a-refusal', 'DELETE'), 'of-a-refusal');
    });
});
