/** Which modules of the bundle stand together in one chunk. */

import type { CodeSplittingGroup } from 'rolldown';

type NameOfChunk = Extract<CodeSplittingGroup['name'], (...args: never) => unknown>;
type Graph = Parameters<NameOfChunk>[1];

/**
 * Chunks, and the modules that begin them: what every command reads, and what a gateway loads. A
 * file more costs a start 0.3 ms, and by default there would be sixty of them.
 */
const BEGINNINGS = [
  ['configuration', /[\\/]src[\\/]config[\\/]load\.ts$/],
  ['serve', /[\\/]src[\\/]cli[\\/]serve\.ts$/],
] as const;

/** Puts what one of the beginnings imports into its chunk, as far as no earlier one has it. */
export function chunksOfStart(): CodeSplittingGroup {
  let chunks: ReadonlyMap<string, string> | undefined;
  return {
    debugName: 'start',
    name(id, graph) {
      chunks ??= chunksIn(graph, id);
      return chunks.get(id);
    },
  };
}

/** The chunk of each module, from any module of the graph. */
function chunksIn(graph: Graph, known: string): ReadonlyMap<string, string> {
  const all = reachedFrom([known], (id) => neighbours(graph, id));
  const chunks = new Map<string, string>();
  for (const [name, beginning] of BEGINNINGS) {
    const begins = [...all].filter((id) => beginning.test(id));
    for (const id of reachedFrom(begins, (one) => graph.getModuleInfo(one)?.importedIds ?? []))
      if (!chunks.has(id)) chunks.set(id, name);
  }
  return chunks;
}

function neighbours(graph: Graph, id: string): readonly string[] {
  const module = graph.getModuleInfo(id);
  if (module === null) return [];
  return [...module.importedIds, ...module.dynamicallyImportedIds, ...module.importers, ...module.dynamicImporters];
}

function reachedFrom(beginnings: readonly string[], next: (id: string) => readonly string[]): ReadonlySet<string> {
  const reached = new Set<string>(beginnings);
  for (const id of reached) for (const other of next(id)) reached.add(other);
  return reached;
}
