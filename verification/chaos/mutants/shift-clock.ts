import { shiftDate } from '../shifted-date.ts';

/** Loaded before a gateway (`node --import`): its wall clock is CLOCK_SHIFT_MS ahead. */
const shiftMs = Number(process.env['CLOCK_SHIFT_MS']);

shiftDate(() => shiftMs);
