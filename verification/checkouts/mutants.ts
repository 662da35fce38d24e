import type { Mutant } from './plan.ts';

/** Wrong machines, each with one changed port. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'an unknown end frees the key, as the letter of the specification has it',
    shows: /has 2 orders/,
    claims: (claims) => ({ ...claims, unknown: (hold) => claims.release(hold) }),
  },
  {
    name: 'the session is not read back',
    shows: /has 2 orders/,
    work: (work) => ({ ...work, readBack: undefined }),
  },
  {
    name: 'a backend that looks at no key is called again at once',
    shows: /has 2 orders/,
    settings: { merchant: 'derived-key' },
  },
  {
    name: 'no lock of the session',
    shows: /two calls at once|has 2 orders/,
    settings: { sessionLock: false },
  },
  {
    name: 'another key on the session is a new call',
    shows: /has 2 orders/,
    claims: (claims) => ({
      ...claims,
      async claim(claim) {
        const claimed = await claims.claim(claim);
        if (claimed.kind !== 'granted' || claimed.earlier?.otherKey !== true) return claimed;
        return { kind: 'granted', fence: claimed.fence };
      },
    }),
  },
  {
    name: 'the lease is not checked before the backend is called',
    shows: /two calls at once|has 2 orders/,
    time: ({ sleep }) => ({ now: () => 0, sleep }),
  },
  {
    name: 'the answer goes out before it is kept',
    shows: /two answers/,
    claims: (claims) => ({
      ...claims,
      async finish(...end) {
        void claims.finish(...end).catch(() => undefined);
        return true;
      },
    }),
  },
  {
    name: 'a session becomes its client’s beside its answer, not before it',
    shows: /is absent for/,
    claims: (claims) => ({
      ...claims,
      async own(owning) {
        void claims.own(owning).catch(() => undefined);
        return true;
      },
    }),
  },
  {
    name: 'the last client that opens a session has it',
    shows: /was shown to/,
    claims: (claims) => ({
      ...claims,
      async own(owning) {
        await claims.own(owning);
        return true;
      },
    }),
  },
  {
    name: 'the attempt that lost its claim sends its own answer',
    shows: /two answers/,
    claims: (claims) => ({
      ...claims,
      async finish(...end) {
        await claims.finish(...end);
        return true;
      },
    }),
  },
];
