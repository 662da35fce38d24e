/** Express alone as a contestant. */

import express from 'express';
import { type Contestant, PEER_QUESTION } from '../contestant.ts';
import { peerProgram, servePeer } from '../serve-peer.ts';

/**
 * Express alone with a small answer and no log: the lower bound for answers without a backend, such
 * as a challenge.
 */
export const expressJson: Contestant = {
  id: 'express',
  suite: 'http',
  title: 'Express, a small JSON answer, no log',
  question: { ...PEER_QUESTION, holds: '"status":"ok"' },
  readyPath: '/',
  against: { id: 'hpm-recipe' },
  program: peerProgram(import.meta.filename),
};

if (import.meta.main) {
  servePeer(() =>
    express().use((_request, response) => {
      response.json({ status: 'ok', city: 'Berlin', price: '106.40', currency: 'EUR' });
    }),
  );
}
