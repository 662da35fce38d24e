/** Changes to single tokens, with which specs forge mandates. */

import type { Json, JsonObject } from '../../../src/json/json.ts';
import type { Content } from '../../../tools/mandate/maker/contents.ts';
import { type Draft, type Signer, sdJwt, signDraft } from '../../../tools/mandate/maker/tokens.ts';

/** The changes of a forger to one token; default: none. */
export interface Hand {
  /** To the mandate, before it is hidden in its disclosure. */
  readonly content?: (content: Content) => Content;
  /** To head, claims and disclosures, before they are signed. */
  readonly draft?: (draft: Draft) => Draft;
  /** Who signs instead. */
  readonly signer?: Pick<Signer, 'sign'>;
  /** To the finished segment, `~` at its end. */
  readonly text?: (segment: string) => string;
}

/** A segment with the changes of a forger. */
export function forge(content: Content, draft: (content: Content) => Draft, signer: Signer, hand: Hand = {}): string {
  const drafted = draft(hand.content?.(content) ?? content);
  const segment = signDraft(hand.draft?.(drafted) ?? drafted, hand.signer ?? signer);
  return hand.text?.(segment) ?? segment;
}

/** Changed members; undefined takes one away. */
export type Changes = Readonly<Record<string, Json | undefined>>;

export function changed(object: JsonObject, changes: Changes): JsonObject {
  const entries = Object.entries({ ...object, ...changes });
  return Object.fromEntries(entries.filter((entry): entry is [string, Json] => entry[1] !== undefined));
}

/** A hand that changes members of the mandate. */
export function withMandate(changes: Changes): Hand {
  return { content: ({ mandate, disclosures }) => ({ mandate: changed(mandate, changes), disclosures }) };
}

/** A hand that changes claims of the token. */
export function withClaims(changes: Changes): Hand {
  return { draft: (draft) => ({ ...draft, claims: changed(draft.claims, changes) }) };
}

/** A hand that changes members of the head. */
export function withHeader(changes: Changes): Hand {
  return { draft: (draft) => ({ ...draft, header: changed(draft.header, changes) }) };
}

/** A hand that changes what is handed over behind the signed token. */
export function withDisclosureTexts(change: (texts: readonly string[]) => readonly string[]): Hand {
  return {
    text: (segment) => {
      const [jwt = '', ...texts] = segment.slice(0, -1).split('~');
      return sdJwt(jwt, change(texts));
    },
  };
}
