/** Shifts the wall clock of this process by `offsetMs()` at each reading, milliseconds. */
export function shiftDate(offsetMs: () => number): void {
  const TrueDate = globalThis.Date;
  const now = (): number => TrueDate.now() + offsetMs();
  globalThis.Date = new Proxy(TrueDate, {
    construct: (target, given) => Reflect.construct(target, given.length === 0 ? [now()] : given) as Date,
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  });
}
