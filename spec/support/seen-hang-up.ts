/**
 * Resolves when a gateway has seen the end of a connection that ended before: when it has answered
 * on others that were opened later.
 */
export async function seenHangUp(url: string): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await (await fetch(`${url}/health`)).arrayBuffer();
}
