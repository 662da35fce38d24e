/**
 * The line of a call: what `httpLog` writes of every other request, composed by hand. A child
 * logger and three listeners a request are most of what that costs.
 */

import type { Request, Response } from 'express';
import { type DestinationStream, pino } from 'pino';
import { outcomeOf, resourceIn } from '../../pipeline/call.ts';
import { accessRecordOf } from '../../server/http/access-record.ts';
import { callIdOf, requestIdOf } from '../../server/http/request-id.ts';
import { rawPath } from '../../server/http/target.ts';
import { isoTime } from '../../time/iso-time.ts';
import type { Tracing } from '../traces/tracing.ts';
import { isTrouble, type Log, MAX_PATH, messageOf } from './log.ts';

/**
 * Writes one line for each call that is over, with the fields and the level of `httpLog`. The path
 * of a call holds nothing that may not be logged: it is that of an adapter.
 */
export function callLog(log: Log, tracing: Pick<Tracing, 'traceId'>): (req: Request, res: Response) => void {
  const { info, warn } = log.levels.values;
  // The logger's own destination, which masks secrets.
  const out = (log as unknown as Readonly<Record<symbol, DestinationStream>>)[pino.symbols.streamSym];
  return function writeCallLine(req, res) {
    const level = (isTrouble(res) ? warn : info) ?? 0;
    if (level >= log.levelVal) out?.write(callLine(req, res, level, tracing.traceId(req, res)));
  };
}

function callLine(req: Request, res: Response, level: number, traceId: string | undefined): string {
  const record = accessRecordOf(res);
  const ms = Math.round(performance.now() - (record?.openedAt ?? 0));
  return (
    `{"level":${level},"time":"${isoTime()}","requestId":${text(requestIdOf(res))},"callId":${text(callIdOf(res))}` +
    `,"method":${text(req.method)},"path":${text(rawPath(req.originalUrl).slice(0, MAX_PATH))},"status":${res.statusCode},"ms":${ms}` +
    member('channel', record?.channel) +
    member('resource', resourceIn(res)) +
    member('outcome', outcomeOf(res)) +
    member('reason', record?.reason) +
    member('backend', record?.backend?.code) +
    member('operation', record?.backend?.operation) +
    member('transaction', record?.transaction) +
    member('refusal', record?.refusal) +
    member('leftOut', record?.leftOut) +
    member('traceId', traceId) +
    `,"msg":"${messageOf(res)}"}\n`
  );
}

function member(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${text(value)}`;
}

/** Text that JSON spells as it is, which is all that lines hold as a rule. */
const PLAIN = /^[\w.:/-]*$/;

function text(value: string): string {
  return PLAIN.test(value) ? `"${value}"` : JSON.stringify(value);
}
