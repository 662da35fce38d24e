/** Copies the facts of a refund to the clipboard. */

import { byId, say } from './dom.js';

const BY_HAND = 'Selected: copy it with Ctrl+C, or ⌘C.';

/**
 * Where the page may not write to the clipboard (plain HTTP on another host), the facts are shown
 * as selected text.
 *
 * @param {(text: string) => void} announce
 */
export function refundView(announce) {
  const dialog = byId('refund', HTMLDialogElement);
  const text = byId('refund-text', HTMLTextAreaElement);
  const note = byId('refund-note', HTMLParagraphElement);
  byId('refund-close', HTMLButtonElement).addEventListener('click', () => dialog.close());

  /** @param {string} facts */
  const copied = async (facts) => {
    try {
      await navigator.clipboard.writeText(facts);
      return true;
    } catch {
      return false;
    }
  };

  return {
    /** @param {string} facts */
    async copy(facts) {
      // Shown first: a browser may ask its user before a page may write to the clipboard.
      text.value = facts;
      say(note, BY_HAND);
      dialog.showModal();
      text.focus();
      text.select();
      text.scrollTop = 0;
      if (!(await copied(facts)) || text.value !== facts) return;
      say(note, 'Copied to the clipboard.');
      announce('Refund facts copied');
    },
    /** Closes it, and forgets what it showed. */
    clear() {
      text.value = '';
      dialog.close();
    },
  };
}
