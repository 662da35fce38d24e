/** `acg pay`: buys one resource as an agent would, after asking a person. */

import { type Command, InvalidArgumentError } from 'commander';
import { defineCommand, repeated, UnavailableError } from '../../src/cli/program.ts';
import { LOCAL_CHAIN_ID } from '../../src/payments/pricing/networks.ts';
import { agreed } from './agreed.ts';
import { bodyOf, type Challenge, type Channel, type Reply, type SignedPayment } from './channel.ts';
import { keepPayment, keptPayment, saveLost } from './kept-payment.ts';
import { elsewhere, isAbove, networkName, type Offer, payableOffer, plain, priceOf } from './offer.ts';
import { ask, outcomeLines, sendUntilAnswered, unpaidLine } from './send.ts';
import { openChannel, type TargetOptions } from './target.ts';
import { keyFor, openWallet } from './wallet.ts';

interface PayOptions extends TargetOptions {
  readonly keyFile?: string;
  readonly yes?: true;
  readonly max?: string;
  readonly network?: string;
  readonly proof?: string;
  readonly wait: number;
  readonly json?: true;
}

export function payCommand(): Command {
  const about = `Calls URL with INPUT (JSON); where it asks for a payment (x402) shows the price, asks you, signs and sends it. A lost answer
is asked for with the same payment.`;
  return defineCommand('pay', about, `acg pay http://127.0.0.1:8402/api/resources/report/invoke '{"city":"Berlin"}'`)
    .argument('<url>')
    .argument('[input]')
    .option('--resource <id>', 'a resource of the gateway at URL, or its tool or skill')
    .option('--mcp', 'over MCP')
    .option('--a2a', 'over A2A')
    .option('--data <file>', 'the body out of a file; - for stdin')
    .option('--method <name>', 'else GET, or POST with a body')
    .option('--header <line>', '"Name: value" of every request; may be repeated', repeated)
    .option('--mandate <file>', 'the AP2 mandate that acg mandate wrote')
    .option('--key-file <file>', "the private key, else ACG_PAY_KEY, else acg dev's TEST one")
    .option('--max <amount>', 'refuse a dearer price: 0.05 of the token, or 50000units')
    .option('--network <name>', 'pay the offer on this one of several: base, or eip155:8453')
    .option('--yes', 'pay without asking')
    .option('--proof <file>', 'keep the signed payment there, or send the one there again')
    .option('--wait <seconds>', 'for a lost answer', seconds, 60)
    .option('--json', 'answer and payment as one JSON object on stdout')
    .action((url: string, input: string | undefined, options: PayOptions) => pay(url, input, options));
}

function seconds(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be whole seconds.');
}

async function pay(url: string, input: string | undefined, options: PayOptions): Promise<void> {
  const channel = await openChannel(url, input, options);
  const kept = options.proof === undefined ? undefined : keptPayment(options.proof);
  if (kept !== undefined) return redeem(channel, kept, undefined, options);
  const asked = await ask(channel, url);
  const { challenge } = asked;
  if (challenge === undefined) {
    note(unpaidLine(asked));
    return print(asked, undefined, options);
  }
  if (challenge.needsMandate && options.mandate === undefined)
    throw new Error(
      'a mandate is needed as well: make one for this challenge (acg mandate --help), then add --mandate FILE',
    );
  const { document, currency } = challenge;
  const offer = payableOffer(document, currency, keyFor(options.keyFile, process.env), options.network);
  const price = priceOf(offer);
  if (options.max !== undefined && isAbove(offer, options.max))
    throw new Error(`the price is ${price}, more than --max ${options.max}: nothing was paid`);
  const wallet = openWallet(offer.chainId, options.keyFile, process.env);
  const terms = termsOf(challenge, offer, price, wallet.address);
  if (!options.yes) await agreed(terms, 'Pay?', 'nothing was paid');
  else note(terms);
  const payment = await wallet.sign(challenge, offer);
  if (options.proof !== undefined) keepPayment(options.proof, payment);
  await redeem(channel, payment, offer, options);
}

/** Sends the payment until it has an answer. @throws Error where none came, or it was refused */
async function redeem(
  channel: Channel,
  payment: SignedPayment,
  offer: Offer | undefined,
  options: PayOptions,
): Promise<void> {
  const howToGoOn = (): string => {
    // Test money is worth no file that a developer did not ask for.
    const file = options.proof ?? (offer?.chainId === LOCAL_CHAIN_ID ? undefined : saveLost(payment));
    return file === undefined
      ? 'with --proof FILE the payment would be kept, to be sent again later'
      : `the same command with --proof ${file} sends the same payment again, which moves no money twice`;
  };
  const stop = (): void => {
    note(howToGoOn());
    process.exit(1);
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  const { reply, why, isOpen } = await sendUntilAnswered(channel, payment, options.wait * 1_000, note);
  process.off('SIGINT', stop).off('SIGTERM', stop);
  if (isOpen) note(howToGoOn());
  if (reply === undefined) throw new UnavailableError(`no answer to the payment, which may have moved money: ${why}`);
  if (reply.challenge !== undefined) {
    const { document, refusal = 'The payment was refused.' } = reply.challenge;
    const others = offer !== undefined && refusal.includes('insufficient_funds') ? elsewhere(document, offer) : '';
    throw new Error(`${plain(refusal)} Nothing was paid.${others}`);
  }
  for (const line of outcomeLines(reply, offer === undefined ? 'by the kept payment' : priceOf(offer))) note(line);
  // What was paid collects later, by the same payment alone.
  if (!reply.ok && !isOpen && reply.settlement?.success === true) note(howToGoOn());
  print(reply, offer, options);
}

function termsOf({ document }: Challenge, offer: Offer, price: string, payer: string): string {
  const { payTo, maxTimeoutSeconds } = offer.requirements;
  const { description, url } = document.resource;
  return `${plain(description ?? url)}
  price    ${price}
  to       ${payTo}
  network  ${networkName(offer)}
  from     ${payer}
  within   ${maxTimeoutSeconds} s`;
}

/** Writes the answer and sets the exit code. */
function print(reply: Reply, offer: Offer | undefined, { json }: PayOptions): void {
  process.exitCode = reply.ok ? 0 : 1;
  if (!json) {
    process.stdout.write(reply.body);
    return;
  }
  const { ok, status, contentType, settlement } = reply;
  const { network, asset, amount, payTo } = offer?.requirements ?? {};
  const payment = settlement && { ...settlement, network, asset, amount, payTo };
  process.stdout.write(`${JSON.stringify({ ok, status, contentType, ...bodyOf(reply.body), payment })}\n`);
}

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}
