/** The register of mandates over documents, and its claims by calls that pay nothing. */

import { type Changes, type Decision, parsed, type Read, type Transact } from '../store/port/transact.ts';
import type { MandateClaim, MandateRegister, RegisterEpoch, Used } from './register/register.ts';
import {
  endOfClaim,
  finishUses,
  type OpenMandateState,
  type RegisterRows,
  reserveUses,
} from './register/register-table.ts';
import { isMandateClaim } from './stored-mandate.ts';

/** Longest name of a call, characters. */
const MAX_NAME_LENGTH = 256;

const onceKey = (id: string): string => `ap2:once:${id}`;
const openKey = (id: string): string => `ap2:open:${id}`;
const heldKey = (name: string): string => `ap2:held:${name}`;
export const EPOCH_KEY = 'ap2:epoch';

/** The keys that the table reads to reserve a claim. */
export function claimKeys(claim: MandateClaim): readonly string[] {
  return [EPOCH_KEY, ...claim.once.map(onceKey), ...openKeys(claim)];
}

/** The keys that it reads to end one. */
export function openKeys({ open }: MandateClaim): readonly string[] {
  return open.map(({ id }) => openKey(id));
}

/** The register inside a decision: `documents` has what the table wrote. */
export function registerIn(read: Read): RegisterRows & { documents(): Changes['documents'] } {
  const written = new Map<string, Changes['documents'][number]>();
  const put = (change: Changes['documents'][number]): void => void written.set(change.key, change);
  return {
    usedUntil(id) {
      const until = read(onceKey(id))?.value;
      return until === undefined ? undefined : Number(until);
    },
    use: (id, untilMs) => put({ key: onceKey(id), value: String(untilMs), endMs: untilMs }),
    free: (id) => put({ key: onceKey(id), value: null }),
    open: (id) => parsed<OpenMandateState>(openKey(id), read(openKey(id))),
    write: (id, state) => put({ key: openKey(id), value: JSON.stringify(state), endMs: state.ends, made: state }),
    remove: (id) => put({ key: openKey(id), value: null }),
    epoch: () => parsed<RegisterEpoch>(EPOCH_KEY, read(EPOCH_KEY)),
    begin: (epoch) => put({ key: EPOCH_KEY, value: JSON.stringify(epoch), made: epoch }),
    documents: () => [...written.values()],
  };
}

/** A replica has a use before the backend is called: a failover would allow it again. */
export function documentRegister(transact: Transact): MandateRegister {
  return {
    async reserve(name, claim) {
      assertCallName(name);
      if (!isMandateClaim(claim)) throw new RangeError('a claim of a mandate is out of its bounds');
      return transact([heldKey(name), ...claimKeys(claim)], (read, now): Decision<Used> => {
        const held = { key: heldKey(name), value: JSON.stringify(claim), endMs: endOfClaim(claim, now) };
        if (read(heldKey(name)) !== undefined)
          // Written again: a replica may not have it yet.
          return { answer: { kind: 'reserved' }, changes: { documents: [held], how: 'replicated' } };
        const register = registerIn(read);
        const reason = reserveUses(register, claim, now);
        const documents = register.documents();
        if (reason === undefined)
          return { answer: { kind: 'reserved' }, changes: { documents: [...documents, held], how: 'replicated' } };
        return { answer: { kind: 'refused', reason }, ...(documents.length === 0 ? {} : { changes: { documents } }) };
      });
    },
    async finish(name, how) {
      assertCallName(name);
      await transact([], (read, now) => {
        const claim = parsed<MandateClaim>(heldKey(name), read(heldKey(name)));
        if (claim === undefined) return { answer: undefined };
        const register = registerIn(read);
        finishUses(register, claim, how, now);
        return {
          answer: undefined,
          changes: { documents: [...register.documents(), { key: heldKey(name), value: null }] },
        };
      });
    },
  };
}

/** @throws RangeError a bug of the caller */
function assertCallName(name: string): void {
  if (name === '' || name.length > MAX_NAME_LENGTH || !name.isWellFormed())
    throw new RangeError('the name of a call is out of its bounds');
}
