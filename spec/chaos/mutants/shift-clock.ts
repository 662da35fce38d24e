/** Loaded before a gateway (`node --import`): its wall clock is CLOCK_SHIFT_MS ahead. */
const shiftMs = Number(process.env['CLOCK_SHIFT_MS']);
const TrueDate = globalThis.Date;

globalThis.Date = new Proxy(TrueDate, {
  construct: (target, given) =>
    Reflect.construct(target, given.length === 0 ? [TrueDate.now() + shiftMs] : given) as Date,
  get: (target, name) => (name === 'now' ? () => TrueDate.now() + shiftMs : Reflect.get(target, name)),
});
