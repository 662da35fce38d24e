/** Makes resources of the operations of an OpenAPI document; reads and writes nothing itself. */

import type { WrittenResource } from '../../src/config/document/document.ts';
import { idsForOperations } from './naming.ts';
import { type Choice, chosen, operationsOf, rootOf } from './operations.ts';
import { type Documents, Inexpressible } from './references.ts';
import { type ResourceOptions, resourceMaker } from './resource.ts';
import { type LeftOut, schemaReader } from './schemas.ts';

export interface ImportOptions extends ResourceOptions {
  readonly choice: Choice;
}

export interface Import {
  /** By id, in the order of the document. */
  readonly resources: Readonly<Record<string, WrittenResource>>;
  /** Operations that are no resource, each with the reason. */
  readonly skipped: readonly { readonly operation: string; readonly reason: string }[];
  /** What the resources do not take although the document has it. */
  readonly narrowed: readonly ({ readonly resource: string } & LeftOut)[];
  /** Resources whose operation has no `x-price`. */
  readonly unpriced: number;
  /** Operations of the document that were not chosen. */
  readonly notChosen: number;
}

/** @throws DocumentError */
export function importOpenApi(documents: Documents, options: ImportOptions): Import {
  const root = rootOf(documents);
  const { operations, unreadable } = operationsOf(documents);
  const wanted = chosen(operations, options.choice);
  const isAll = wanted.length === operations.length;
  const reader = schemaReader(documents, { siblings: !String(root['openapi']).startsWith('3.0') });
  const makeResource = resourceMaker(documents, root, reader, options);
  const nextId = idsForOperations();
  const resources: [string, WrittenResource][] = [];
  const skipped = isAll ? unreadable.map(({ label, reason }) => ({ operation: label, reason })) : [];
  const narrowed: ({ readonly resource: string } & LeftOut)[] = [];
  let unpriced = 0;
  for (const operation of wanted) {
    try {
      const { resource, leftOut } = makeResource(operation);
      const id = nextId(operation);
      resources.push([id, resource]);
      if (operation.place.value['x-price'] === undefined) unpriced += 1;
      narrowed.push(...leftOut.map((one) => ({ resource: id, ...one })));
    } catch (error) {
      if (!(error instanceof Inexpressible)) throw error;
      skipped.push({ operation: operation.label, reason: error.message });
    }
  }
  const notChosen = operations.length - wanted.length;
  return { resources: Object.fromEntries(resources), skipped, narrowed, unpriced, notChosen };
}
