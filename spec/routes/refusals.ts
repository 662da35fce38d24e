/** Refused calls with their status and code: what a path refuses for reasons of its own. */

import type { ErrorCode } from '../../src/errors.ts';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import type { Sent } from './world.ts';

/** One way to be refused. Headers are those of a JSON body unless given. */
export interface Row extends Sent {
  readonly rule: string;
  /** Default: POST. */
  readonly method?: string;
  readonly path: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly details?: unknown;
}

export const INVOKE = '/api/resources/free_market_report/invoke';
const json = (value: unknown): string => JSON.stringify(value);

/** Every refusal that needs no money near it, but for those that every route of the table has. */
export const ROWS: readonly Row[] = [
  {
    rule: 'malformed JSON',
    path: INVOKE,
    body: '{',
    status: 400,
    code: 'INPUT_INVALID',
    details: { reason: 'malformed_json' },
  },
  { rule: 'a body that is no object', path: INVOKE, body: '[]', status: 400, code: 'INPUT_INVALID' },
  {
    rule: 'a name twice',
    path: INVOKE,
    body: '{"city":"a","city":"b"}',
    status: 400,
    code: 'INPUT_INVALID',
    details: { reason: 'duplicate_key' },
  },
  {
    rule: 'a name that reaches a prototype',
    path: INVOKE,
    body: '{"__proto__":{}}',
    status: 400,
    code: 'INPUT_INVALID',
    details: { reason: 'forbidden_key' },
  },
  {
    rule: 'an input that the schema refuses',
    path: INVOKE,
    body: json({ city: '' }),
    status: 400,
    code: 'INPUT_INVALID',
  },
  { rule: 'an input property that is missing', path: INVOKE, body: '{}', status: 400, code: 'INPUT_INVALID' },
  {
    rule: 'an input property that is not declared',
    path: INVOKE,
    body: json({ city: 'a', x: 1 }),
    status: 400,
    code: 'INPUT_INVALID',
  },
  {
    rule: 'a path parameter that climbs',
    path: INVOKE,
    body: json({ city: '..' }),
    status: 400,
    code: 'INPUT_INVALID',
  },
  {
    rule: 'a paid resource checks its input before its price',
    path: '/api/resources/market_report/invoke',
    body: '{}',
    status: 400,
    code: 'INPUT_INVALID',
  },
  {
    rule: 'a path that is not percent-encoded',
    path: '/api/resources/%zz/invoke',
    body: '{}',
    status: 400,
    code: 'INPUT_INVALID',
    details: { reason: 'malformed_path' },
  },
  {
    rule: 'an input that the schema refuses, in place, before its price',
    method: 'GET',
    path: `/reports/${'x'.repeat(65)}`,
    headers: {},
    status: 400,
    code: 'INPUT_INVALID',
  },
  {
    rule: 'a path that is not percent-encoded, at what would be an address',
    method: 'GET',
    path: '/reports/%zz',
    headers: {},
    status: 404,
    code: 'NOT_FOUND',
  },
  {
    rule: 'a limit of 0',
    method: 'GET',
    path: '/api/events?limit=0',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    status: 400,
    code: 'INPUT_INVALID',
    details: { field: 'limit' },
  },
  {
    rule: 'a limit that is a fraction',
    method: 'GET',
    path: '/api/receipts?limit=1.5',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    status: 400,
    code: 'INPUT_INVALID',
    details: { field: 'limit' },
  },
  {
    rule: 'a cursor that is none',
    method: 'GET',
    path: '/api/events?cursor=x',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    status: 400,
    code: 'INPUT_INVALID',
    details: { field: 'cursor' },
  },
  {
    rule: 'an unknown resource',
    path: '/api/resources/nothing_here/invoke',
    body: '{}',
    status: 404,
    code: 'RESOURCE_NOT_FOUND',
  },
  {
    rule: 'a resource named like a member of every object',
    path: '/api/resources/constructor/invoke',
    body: '{}',
    status: 404,
    code: 'RESOURCE_NOT_FOUND',
  },
  {
    rule: 'an encoded slash in an id',
    path: '/api/resources/a%2Fb/invoke',
    body: '{}',
    status: 404,
    code: 'NOT_FOUND',
  },
  {
    rule: 'an encoded slash in an id, with another method',
    method: 'GET',
    path: '/api/resources/a%2Fb/invoke',
    headers: {},
    status: 404,
    code: 'NOT_FOUND',
  },
  {
    rule: 'a body of the cap is read',
    path: INVOKE,
    body: Buffer.alloc(262_144, 0x20),
    status: 400,
    code: 'INPUT_INVALID',
    details: { reason: 'malformed_json' },
  },
];
