/** The usual recipe in several processes under node:cluster, as a contestant. */

import cluster from 'node:cluster';
import { type Contestant, PEER_QUESTION } from '../contestant.ts';
import { peerProgram, servePeer } from '../serve-peer.ts';
import { hpmRecipe, recipeApp } from './hpm-recipe.ts';

/** `workers` processes behind one port. */
export function recipeCluster(workers: number): Contestant {
  return {
    id: `recipe-${workers}`,
    suite: 'free',
    title: `${hpmRecipe.title}, node:cluster of ${workers}`,
    question: PEER_QUESTION,
    readyPath: '/',
    program: peerProgram(import.meta.filename, { WORKERS: String(workers) }),
  };
}

if (import.meta.main) {
  if (cluster.isPrimary) {
    for (let worker = 0; worker < Number(process.env['WORKERS']); worker += 1) cluster.fork();
    process.once('SIGTERM', () => process.exit(0));
  } else servePeer(recipeApp);
}
