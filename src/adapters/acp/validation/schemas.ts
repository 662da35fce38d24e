/** The published schemas of ACP, and the definition of each document in them. */

import capabilities from '../../../../schemas/acp/2026-04-17/capabilities.schema.json' with { type: 'json' };
import common from '../../../../schemas/acp/2026-04-17/common.schema.json' with { type: 'json' };
import discovery from '../../../../schemas/acp/2026-04-17/discovery.schema.json' with { type: 'json' };
import error from '../../../../schemas/acp/2026-04-17/error.schema.json' with { type: 'json' };
import fulfillmentOption from '../../../../schemas/acp/2026-04-17/fulfillment-option.schema.json' with { type: 'json' };
import lineItem from '../../../../schemas/acp/2026-04-17/line-item.schema.json' with { type: 'json' };
import message from '../../../../schemas/acp/2026-04-17/message.schema.json' with { type: 'json' };
import money from '../../../../schemas/acp/2026-04-17/money.schema.json' with { type: 'json' };
import order from '../../../../schemas/acp/2026-04-17/order.schema.json' with { type: 'json' };
import request from '../../../../schemas/acp/2026-04-17/request.schema.json' with { type: 'json' };
import session from '../../../../schemas/acp/2026-04-17/session.schema.json' with { type: 'json' };
import type { JsonObject } from '../../../json/types.ts';
import type { DocumentName } from './types.ts';

/** By their file names, by which they refer to one another. */
export const SCHEMA_FILES: Readonly<Record<string, JsonObject>> = {
  'capabilities.schema.json': capabilities,
  'common.schema.json': common,
  'discovery.schema.json': discovery,
  'error.schema.json': error,
  'fulfillment-option.schema.json': fulfillmentOption,
  'line-item.schema.json': lineItem,
  'message.schema.json': message,
  'money.schema.json': money,
  'order.schema.json': order,
  'request.schema.json': request,
  'session.schema.json': session,
};

const FILE_OF: Readonly<Record<DocumentName, keyof typeof SCHEMA_FILES>> = {
  CheckoutSessionCreateRequest: 'request.schema.json',
  CheckoutSessionUpdateRequest: 'request.schema.json',
  CheckoutSessionCompleteRequest: 'request.schema.json',
  CancelSessionRequest: 'request.schema.json',
  CheckoutSession: 'session.schema.json',
  CheckoutSessionWithOrder: 'session.schema.json',
  DiscoveryResponse: 'discovery.schema.json',
  Error: 'error.schema.json',
};

/** Reference to the definition of a document. */
export function referenceTo(name: DocumentName): string {
  return `${FILE_OF[name]}#/$defs/${name}`;
}
