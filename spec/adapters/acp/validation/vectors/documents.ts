import type { DocumentName } from '../../../../../src/adapters/acp/validation/types.ts';
import { discovery, error } from './answers.ts';
import type { Kind } from './kinds.ts';
import { cancelRequest, completeRequest, createRequest, updateRequest } from './requests.ts';
import { session, sessionWithOrder } from './session.ts';

/** Own vectors: every document of acp 3, 4, 6 and 7, each rule from both sides. */
export const VECTORS: Readonly<Record<DocumentName, Kind>> = {
  CheckoutSessionCreateRequest: createRequest,
  CheckoutSessionUpdateRequest: updateRequest,
  CheckoutSessionCompleteRequest: completeRequest,
  CancelSessionRequest: cancelRequest,
  CheckoutSession: session,
  CheckoutSessionWithOrder: sessionWithOrder,
  DiscoveryResponse: discovery,
  Error: error,
};
