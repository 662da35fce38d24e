/** How long it counts that an account is a contract, milliseconds (contract 4.2). */
export const CODE_TTL_MS = 600_000;
/** How long it counts that it is none: a wallet is deployed with its first payment, and its second may follow at once. */
export const NO_CODE_TTL_MS = 5_000;
/** Most accounts remembered; the oldest answer goes first. */
const CODE_CACHE_ENTRIES = 10_000;
/** Most questions to the chain at a time: forged proofs with invented payers must not use up the RPC. */
export const CODE_LOOKUPS = 16;

type HasCode = (address: string) => Promise<boolean>;

/** `lookup` with a memory, one question per account at a time, and a bound. Rejects when the chain fails or is asked too much. */
export function rememberCode(lookup: HasCode, now: () => number = Date.now): HasCode {
  const known = new Map<string, { readonly hasCode: boolean; readonly until: number }>();
  const asking = new Map<string, Promise<boolean>>();
  const remember = (address: string, hasCode: boolean): void => {
    const oldest = known.size >= CODE_CACHE_ENTRIES ? known.keys().next().value : undefined;
    if (oldest !== undefined) known.delete(oldest);
    known.set(address, { hasCode, until: now() + (hasCode ? CODE_TTL_MS : NO_CODE_TTL_MS) });
  };
  const ask = async (address: string): Promise<boolean> => {
    try {
      const hasCode = await lookup(address);
      remember(address, hasCode);
      return hasCode;
    } finally {
      asking.delete(address);
    }
  };
  return async function hasCode(address) {
    const cached = known.get(address);
    if (cached !== undefined && now() < cached.until) return cached.hasCode;
    const running = asking.get(address);
    if (running !== undefined) return running;
    if (asking.size >= CODE_LOOKUPS) throw new Error('too many questions about payers at a time');
    known.delete(address);
    const question = ask(address);
    asking.set(address, question);
    return question;
  };
}
