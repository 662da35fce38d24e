import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/** Listens to the steps of one payment. `end` stops listening and gives them in order. */
export function stepsOf(channel: string, payId: string): { end(): readonly string[] } {
  const steps: string[] = [];
  const note = (message: unknown): void => {
    const passed = message as { readonly step: string; readonly payId: string };
    if (passed.payId === payId) steps.push(passed.step);
  };
  subscribe(channel, note);
  return {
    end() {
      unsubscribe(channel, note);
      return steps;
    },
  };
}
