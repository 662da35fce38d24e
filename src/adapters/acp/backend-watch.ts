import type { Operation } from '../../checkouts/operations.ts';
import type { DocumentFault } from './backend-answer.ts';
import type { Contradiction } from './semantics.ts';

/** A document of the merchant's that was refused: where it is wrong, and nothing of what stands in it. */
export interface InvalidDocument extends DocumentFault {
  readonly operation: Operation;
  readonly requestId: string;
  readonly callId: string;
}

/** A document that was passed on although it contradicts itself or the call. */
export interface ContradictoryDocument {
  readonly operation: Operation;
  readonly requestId: string;
  readonly callId: string;
  readonly contradiction: Contradiction;
}

/** Told of what the merchant does. */
export interface BackendWatch {
  /** An exchange begins; the result is called when it is over. */
  exchanging(): () => void;
  invalidDocument(found: InvalidDocument): void;
  contradiction(found: ContradictoryDocument): void;
}
