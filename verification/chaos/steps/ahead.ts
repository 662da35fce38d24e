/** Loaded before a gateway (`node --import`): its wall clock is AHEAD_MS ahead. */

import { shiftDate } from '../shifted-date.ts';

const aheadMs = Number(process.env['AHEAD_MS']);
shiftDate(() => aheadMs);
