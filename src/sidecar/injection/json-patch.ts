/** The JSON patch (RFC 6902) that makes an injected pod of the pod that was given. */

import { isDeepStrictEqual } from 'node:util';
import type { Pod } from './pod.ts';

export interface PatchOperation {
  readonly op: 'add';
  readonly path: string;
  readonly value: unknown;
}

/**
 * One `add` with the whole new value for each changed member of `metadata`, `spec` and each
 * container: an `add` replaces a member that is there, and needs only its parent to be there.
 */
export function patchBetween(before: Pod, after: Pod): readonly PatchOperation[] {
  const { containers: containersBefore, ...specBefore } = before.spec;
  const { containers: containersAfter, ...specAfter } = after.spec;
  return [
    ...(before.metadata === undefined
      ? changes('', {}, after.metadata === undefined ? {} : { metadata: after.metadata })
      : changes('/metadata', before.metadata, after.metadata ?? {})),
    ...changes('/spec', specBefore, specAfter),
    ...containersAfter.flatMap((container, index) =>
      changes(`/spec/containers/${index}`, containersBefore[index] ?? {}, container),
    ),
  ];
}

function changes(path: string, before: object, after: object): readonly PatchOperation[] {
  const had = new Map<string, unknown>(Object.entries(before));
  return Object.entries(after)
    .filter(([name, value]) => !had.has(name) || !isDeepStrictEqual(had.get(name), value))
    .map(([name, value]) => ({ op: 'add', path: `${path}/${pointer(name)}`, value }));
}

/** A member's name inside a JSON pointer (RFC 6901). */
export function pointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
