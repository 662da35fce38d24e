/** Writes outcomes of calls in place: as over HTTP, and a page for people (contract 7.4). */

import type { Response } from 'express';
import { PAYMENT_REQUIRED } from '../../payments/x402/wire/types.ts';
import type { ResponseWriter } from '../../pipeline/call.ts';
import { PAGE_HEADERS } from '../../server/http/page.ts';
import { sendText } from '../../server/http/respond.ts';
import { httpResponseWriter } from '../http/response-writer.ts';

/** What an answer in place depends on beside the call. */
interface InPlaceAnswer {
  /** The page of a 402; undefined: the caller is a program. */
  readonly page: (() => string) | undefined;
  /** Request headers that a free answer may depend on: caches must tell its copies apart. */
  readonly variesBy: readonly string[];
  /** For the fields of payment and merchant in a head, bytes. */
  readonly room?: number | undefined;
}

export function originResponseWriter(
  res: Response,
  requestId: string,
  { page, variesBy, room }: InPlaceAnswer,
): ResponseWriter {
  const writer = httpResponseWriter(res, requestId, { ranges: true, ...(room === undefined ? {} : { room }) });
  return {
    ...writer,
    paymentRequired(challenge, payment) {
      res.vary('Accept');
      // A caller that brought a proof is a program, whatever else it accepts.
      if (page === undefined || challenge.refusal !== undefined) {
        writer.paymentRequired(challenge, payment);
        return;
      }
      if (challenge.header !== '') res.setHeader(PAYMENT_REQUIRED, challenge.header);
      res.setHeader('cache-control', 'no-store');
      sendText(res, 402, PAGE_HEADERS, page());
    },
    relay(answer, options) {
      if (!res.headersSent) {
        if (options.payment !== undefined) res.setHeader('accept-ranges', 'none');
        else for (const name of variesBy) res.vary(name);
      }
      return writer.relay(answer, options);
    },
  };
}
