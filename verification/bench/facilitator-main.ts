/**
 * The facilitator of all contestants: approves what it is asked, moves nothing, and counts, so that
 * the run can check that each paid call asked twice. PORT names its port; GET /counts tells.
 */
import { type Message, serveRaw } from './framing.ts';

const NETWORK = 'eip155:84532';
/** A well-formed hash of a transaction that does not exist. */
const TRANSACTION = `0x${'ab'.repeat(32)}`;
const PAYER = /"from": *"(0x[0-9a-fA-F]{40})"/;
const counts = { verify: 0, settle: 0 };

serveRaw(Number(process.env['PORT']), ({ head, bodyAt, end }: Message, bytes) => {
  const [, path] = head.split(' ', 2);
  if (path === '/supported')
    return approved({ kinds: [{ x402Version: 2, scheme: 'exact', network: NETWORK }], extensions: [], signers: {} });
  if (path === '/counts') return approved(counts);
  const payer = PAYER.exec(bytes.toString('latin1', bodyAt, end))?.[1];
  if (path === '/verify') {
    counts.verify += 1;
    return approved({ isValid: true, payer });
  }
  if (path !== '/settle') return { status: 404, json: '{}' };
  counts.settle += 1;
  return approved({ success: true, transaction: TRANSACTION, network: NETWORK, payer });
});

function approved(body: object) {
  return { status: 200, json: JSON.stringify(body) };
}
