import type { Response } from 'express';
import { BackendError } from '../backend/types.ts';
import { ERRORS } from '../errors.ts';
import { accessRecordOf, type Outcome } from '../server/http/access-record.ts';
import { currentCall } from './call.ts';

/** What became of a request that is over. Undefined: it was no call, and nothing was refused. */
export function outcomeOf(res: Pick<Response, 'locals' | 'writableFinished'>): Outcome | undefined {
  const account = accessRecordOf(res);
  if (account === undefined || res.writableFinished) return account?.outcome;
  const { outcome, relaying, channel } = account;
  if (relaying === undefined) return outcome ?? (channel === undefined ? undefined : 'client_gone');
  // A relay that did not get to its end: either side may have broken it off.
  const { errored } = relaying;
  const byCaller = errored === null || (errored instanceof BackendError && errored.reason === 'aborted');
  return byCaller ? 'client_gone' : 'BACKEND_ERROR';
}

/** Whether somebody on this side of the caller failed. */
export function isFailure(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && outcome in ERRORS && ERRORS[outcome as keyof typeof ERRORS].status >= 500;
}

/**
 * The id of a resource that exists and is exposed on the caller's channel; what a caller merely names is not. Of a checkout: its
 * operation.
 */
export function resourceIn(res: Response): string | undefined {
  const call = currentCall(res);
  if (call === undefined) return accessRecordOf(res)?.operation;
  return call.stage === 'received' ? undefined : call.resource.id;
}
