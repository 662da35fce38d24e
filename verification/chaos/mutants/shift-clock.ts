/** Loaded before a gateway (`node --import`): its wall clock is CLOCK_SHIFT_MS ahead. */

import { shiftDate } from '../shifted-date.ts';

const shiftMs = Number(process.env['CLOCK_SHIFT_MS']);

shiftDate(() => shiftMs);
