import type { Response } from 'express';

/** Aborted when the connection closes before the answer was sent. */
export function clientGone(res: Response): AbortSignal {
  const leaving = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) leaving.abort();
  });
  return leaving.signal;
}
