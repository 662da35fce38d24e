/**
 * Loaded before a gateway (`node --import`): at each SIGUSR2 its wall clock jumps, in turn ahead,
 * behind and back to the real time. The jumps stay below 30 s, from which on a gateway reports its
 * own clock as wrong.
 */

import { shiftDate } from './shifted-date.ts';

const JUMPS_MS = [0, 20_000, -20_000] as const;
let jumps = 0;

process.on('SIGUSR2', () => {
  jumps += 1;
});

shiftDate(() => JUMPS_MS[jumps % JUMPS_MS.length] ?? 0);
