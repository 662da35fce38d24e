/**
 * Loaded before a gateway (`node --import`): at each SIGUSR2 its wall clock jumps, in turn ahead,
 * behind and back to the real time. The jumps stay below 30 s, from which on a gateway reports its
 * own clock as wrong.
 */

const JUMPS_MS = [0, 20_000, -20_000] as const;
let jumps = 0;

process.on('SIGUSR2', () => {
  jumps += 1;
});

shiftDate(() => JUMPS_MS[jumps % JUMPS_MS.length] ?? 0);

/** Shifts the wall clock of this process by `offsetMs()` at each reading, milliseconds. */
function shiftDate(offsetMs: () => number): void {
  const TrueDate = globalThis.Date;
  const now = (): number => TrueDate.now() + offsetMs();
  globalThis.Date = new Proxy(TrueDate, {
    construct: (target, given) => Reflect.construct(target, given.length === 0 ? [now()] : given) as Date,
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  });
}
