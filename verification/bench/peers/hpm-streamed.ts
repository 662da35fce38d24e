/** The smallest proxy of Express and http-proxy-middleware as a contestant. */

import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { type Contestant, PEER_QUESTION } from '../contestant.ts';
import { exact } from '../packages.ts';
import { peerProgram, servePeer } from '../serve-peer.ts';

/**
 * The minimum of Express and http-proxy-middleware: stream both ways, read nothing, log nothing.
 */
export const hpmStreamed: Contestant = {
  id: 'hpm-streamed',
  suite: 'free',
  title: `${exact('express', 'http-proxy-middleware')}, streamed, no log`,
  question: PEER_QUESTION,
  readyPath: '/',
  program: peerProgram(import.meta.filename),
};

if (import.meta.main) {
  servePeer((target) => express().use(createProxyMiddleware({ target, changeOrigin: true })));
}
