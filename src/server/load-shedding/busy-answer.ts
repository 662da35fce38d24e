import http from 'node:http';
import { errorEnvelope, GatewayError } from '../../errors.ts';
import { MAX_BODY_BYTES } from '../http/body.ts';

/** When a caller may come again, seconds (contract 1.2). */
export const RETRY_AFTER_SECONDS = 1;

const { writeHead } = http.ServerResponse.prototype;
const PLACE_OF_ID = 'ID';
const [BEFORE_ID = '', AFTER_ID = ''] = JSON.stringify(
  errorEnvelope(new GatewayError('GATEWAY_BUSY'), PLACE_OF_ID),
).split(PLACE_OF_ID);

/**
 * Answers 503 GATEWAY_BUSY before anything is read or routed: bytes that are there already, and one write. The connection is kept
 * where the rest of the request can be skipped: its length is declared and within what would be read anyway. Else, and when `last` says
 * that the process leaves, the answer goes the way of all others, which ends the connection in order.
 */
export function answerBusy(
  req: http.IncomingMessage,
  res: http.ServerResponse,
  requestId: string,
  last: boolean,
): void {
  const body = `${BEFORE_ID}${requestId}${AFTER_ID}`;
  const head = [
    'content-type',
    'application/json; charset=utf-8',
    'content-length',
    String(body.length),
    'retry-after',
    String(RETRY_AFTER_SECONDS),
    'cache-control',
    'no-store',
    'x-request-id',
    requestId,
  ];
  if (!last && res.shouldKeepAlive && canBeSkipped(req)) {
    writeHead.call(res, 503, head);
    // Nobody will look at the body: without a reader it would be kept until the answer is out.
    req.resume();
  } else res.writeHead(503, head);
  res.end(body, 'latin1');
}

function canBeSkipped({ headers }: http.IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined || headers.expect !== undefined) return false;
  return Number(headers['content-length'] ?? 0) <= MAX_BODY_BYTES;
}
