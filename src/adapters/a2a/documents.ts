import { Router } from 'express';
import { signDocument } from '../../crypto/detached-signature.ts';
import { KEY_SET_PATH } from '../../crypto/key-set.ts';
import { readSigningKey, type SigningKey } from '../../crypto/signing-key.ts';
import type { JsonObject } from '../../json/types.ts';
import type { StaticDocument } from '../../resources/resource.ts';
import { staticDocument } from '../../resources/static-document.ts';
import { allowOnly } from '../../server/http/methods.ts';
import { published } from '../../server/http/publish.ts';
import { agentCard, type CardParts, type CardSettings } from './agent-card.ts';

/** What the published documents are made from. */
interface DocumentParts extends CardParts {
  /** `signingKey`: PKCS#8 PEM, checked by the configuration; undefined: the card is not signed. */
  readonly settings: CardSettings & { readonly signingKey: string | undefined };
  readonly startedAt: Date;
}

const CARD_PATH = '/.well-known/agent-card.json';

/**
 * The agent card at both places where clients look for it (they resolve a relative reference, so a slash at the end of their base
 * URL decides). Bytes made once; the key of its signature is published with those of the gateway's other signatures.
 */
export function a2aDocuments({ startedAt, ...parts }: DocumentParts): Router {
  const { settings, merchant } = parts;
  const key = keyOf(settings.signingKey);
  const card = agentCard(parts);
  const router = Router({ strict: true, caseSensitive: true });
  const publish = (paths: string[], document: StaticDocument): void => {
    router.get(paths, published(document, startedAt));
    router.all(paths, allowOnly('GET', 'HEAD'));
  };
  const text = key === undefined ? card : signed(card, key, `${merchant.publicBaseUrl}${KEY_SET_PATH}`);
  publish([CARD_PATH, `${settings.mountPath}${CARD_PATH}`], staticDocument(text));
  return router;
}

function keyOf(pem: string | undefined): SigningKey | undefined {
  if (pem === undefined) return undefined;
  const reading = readSigningKey(pem);
  if (!reading.ok) throw new Error('the configuration let a signing key pass that is none');
  return reading.key;
}

/** A2A 1.0, section 8.4. ES256 draws a random number, so each process publishes a signature, and with it an ETag, of its own. */
function signed(card: JsonObject, key: SigningKey, keySetUrl: string): JsonObject {
  const signature = signDocument(card, key, keySetUrl);
  return { ...card, signatures: [{ protected: signature.protected, signature: signature.signature }] };
}
