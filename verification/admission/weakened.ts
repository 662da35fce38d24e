/** Policies with one thing wrong: a comparison that does not notice them proves nothing. */

import type { ClusterObject } from './manifests.ts';

/** Pieces of the mutating policy, and what stands in their place when it is wrong. */
export const WEAKENINGS: readonly Weakening[] = [
  { name: 'the probe of readiness asks /ready', piece: "'/routing'", instead: "'/ready'" },
  { name: 'the hooks lack their header', piece: "name: 'Agent-Commerce-Hook'", instead: "name: 'Hook'" },
  { name: 'the container is no sidecar', piece: "restartPolicy: 'Always'", instead: "restartPolicy: 'OnFailure'" },
  {
    name: 'the file system is writable',
    piece: 'readOnlyRootFilesystem: true',
    instead: 'readOnlyRootFilesystem: false',
  },
  { name: 'a $ is not written twice', piece: "e[1].replace('$', '$$')", instead: 'e[1]' },
  {
    name: 'the drain is not added to the grace',
    piece: 'variables.ownGrace + variables.drain',
    instead: 'variables.ownGrace',
  },
  {
    name: 'the pod cannot choose its drain',
    piece: "variables.annotations[?'agent-commerce.dev/drain-seconds'].orValue(params.data.drainSeconds)",
    instead: 'params.data.drainSeconds',
  },
  {
    name: 'a probe of a host is taken for the pod',
    piece: "'localhost', '127.0.0.1'] ? 'merchant' : 'elsewhere'",
    instead: "'localhost', '127.0.0.1'] ? 'merchant' : 'merchant'",
  },
  { name: 'HTTPS probes are asked in plain', piece: "h.?scheme.orValue('HTTP').lowerAscii()", instead: "'http'" },
  { name: 'headers stand in one line', piece: ".join('\\n')", instead: ".join(', ')" },
  { name: 'the gateway is the first init container', piece: 'string(variables.place[0])', instead: "'0'" },
  {
    name: 'the first container is the merchant',
    piece: "'/spec/containers/' + string(variables.index[0])",
    instead: "'/spec/containers/0'",
  },
  {
    name: 'what a mesh lets past is forgotten',
    piece: "variables.annotations[key] + ',' + string(variables.managementPort)",
    instead: 'string(variables.managementPort)',
  },
  { name: 'a hook to elsewhere is replaced', piece: "|| variables.kinds[3] == 'elsewhere' ?", instead: '?' },
  { name: 'a sleep is forgotten', piece: 'string(variables.preStop.sleep.?seconds.orValue(0))', instead: "'0'" },
  {
    name: 'probes are rewritten against the wish of the pod',
    piece: "orValue('true') == 'true'",
    instead: "orValue('true') != ''",
  },
  { name: 'what cannot be injected is injected', piece: "variables.refusal == ''", instead: 'true' },
];

interface Weakening {
  readonly name: string;
  readonly piece: string;
  readonly instead: string;
}

/**
 * The objects with one piece of the mutating policy replaced.
 * @throws Error when the policy does not have it
 */
export function weakened(objects: readonly ClusterObject[], piece: string, instead: string): readonly ClusterObject[] {
  let found = false;
  const changed = objects.map((object) => {
    if (object.kind !== 'MutatingAdmissionPolicy') return object;
    const text = JSON.stringify(object);
    const [wanted, given] = [inner(piece), inner(instead)];
    found = text.includes(wanted);
    return JSON.parse(text.replaceAll(wanted, () => given)) as ClusterObject;
  });
  if (!found) throw new Error(`the policy has no ${piece}`);
  return changed;
}

/** The objects with one validation of theirs gone, for each validation. */
export function without(objects: readonly ClusterObject[]): readonly Unguarded[] {
  return objects.flatMap((object, place) => {
    const spec = object['spec'] as Validating | undefined;
    return (spec?.validations ?? []).map(({ message }, gone) => {
      const validations = spec?.validations?.map((each, index) =>
        index === gone ? { ...each, expression: 'true' } : each,
      );
      return { name: message, objects: objects.with(place, { ...object, spec: { ...spec, validations } }) };
    });
  });
}

interface Validating {
  readonly validations?: readonly { readonly message: string }[];
}

/** What is applied where one validation is missing; named by the words that are not said then. */
interface Unguarded {
  readonly name: string;
  readonly objects: readonly ClusterObject[];
}

/** A text as it stands inside a JSON string. */
function inner(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
