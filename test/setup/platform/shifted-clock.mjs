/** Loaded before a platform (`node --import`): its wall clock is off by TEST_CLOCK_SHIFT_MS, in every thread. Monotonic clocks are right. */
const shiftMs = Number(process.env.TEST_CLOCK_SHIFT_MS);
const { now } = Date;
const shiftedNow = () => now() + shiftMs;

globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [shiftedNow()] : args, newTarget),
  apply: () => new globalThis.Date().toString(),
  get: (target, name) => (name === 'now' ? shiftedNow : Reflect.get(target, name)),
});
