// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.

/** Attacks that specs elsewhere prove: by file, the rows of each title as it is spelled there. */
export const ELSEWHERE: Readonly<Record<string, readonly (readonly [rows: string, title: string])[]>> = {
  'spec/adapters/a2a/request.spec.ts': [
    ['A3', 'throws for no value in any position of a message'],
    ['A3', '5 refuses other ids, and a notification, and runs nothing'],
  ],
  'spec/adapters/acp/adapter.spec.ts': [
    ['A6 H3', 'must come once: two are refused, even when one of them is right'],
    ['A7 H6', 'has no header of the backend'],
  ],
  'spec/adapters/acp/backend-document.spec.ts': [
    ['A7', 'matches the schema, and the fault names the path and the keyword, never a value'],
  ],
  'spec/adapters/acp/backend-exchange.spec.ts': [
    ['A7', '${what}: 502'],
    ['A7', 'requires_3ds is passed on, with its path and without the backend’s message'],
    ['A7 P2', 'a redirect is not followed: its target gets no request'],
    [
      'A7',
      "${from} on ${operation}, page ${page ?? 'short'}, is kept as ${to} ${code}, with the gateway’s own message",
    ],
  ],
  'spec/adapters/acp/backend-service.spec.ts': [['A6 O7', 'hold nothing of the caller’s or the backend’s']],
  'spec/checkouts/names.spec.ts': [
    ['A6', 'ignores ${name}'],
    ['A6', 'make the same key another one for another client, operation, session, deployment, key or secret'],
  ],
  'spec/config/refusals.yaml': [
    ['P4', 'the backend at <each> even where others are allowed'],
    ['P4', 'the backend at <each> where it is not allowed'],
  ],
  'spec/config/secrecy.spec.ts': [
    ['O8', 'shows nothing of a value that the environment or a file has'],
    ['O8', 'shows no secret: ${title}'],
    ['O8', 'shows no part of a secret where a character is wrong: ${title}'],
    ['O8', 'shows nothing of ${title}'],
  ],
  'spec/e2e/canary-acp.spec.ts': [
    ['A6', 'buys, gets the same answer again, and is refused what contradicts it'],
    ['A6 O7', 'comes out nowhere'],
    ['A7', 'does not come out of a backend that quotes it in ${name}'],
  ],
  'spec/e2e/canary.spec.ts': [
    ['O7', 'are in nothing that comes out'],
    ['O7', 'are not in Redis, but for the proof of a payment that is not at an end'],
    ['O7', 'would be noticed, in every spelling'],
  ],
  'spec/e2e/join.spec.ts': [['X3', 'with one key: the same']],
  'spec/e2e/keys-refused.spec.ts': [['H3', 'came twice, equal']],
  'spec/e2e/lifecycle.spec.ts': [
    ['D7', 'SIGTERM: a paid call that runs is delivered, new calls are still served for a while, exit 0'],
  ],
  'spec/e2e/mandates-policy.spec.ts': [['A2', 'refuses any other payment of the same payer, and takes the one']],
  'spec/e2e/mandates-race.spec.ts': [['A2', 'copies of one call share one mandate and one settlement']],
  'spec/e2e/mandates-refused.spec.ts': [
    ['A1', 'the same mandate buys once; the second payment is not touched and buys with another'],
    ['A2', 'one open mandate, closed twice, buys once'],
  ],
  'spec/e2e/mandates-store-loss.spec.ts': [
    [
      'A1',
      'is refused under a fresh checkout as well when it is open, the log states why, and the operator may accept it',
    ],
  ],
  'spec/e2e/near-money.spec.ts': [
    ['X12', 'PAYMENT_PROVIDER_UNAVAILABLE 503 before settlement, and the same proof works later'],
    ['X12', 'PAYMENT_SETTLEMENT_FAILED 502 after it: uncertain, with no time at which to sign again, never 402'],
    ['D2', 'GATEWAY_BUSY 503 above the cap on calls in flight'],
    ['D2', 'callers that leave do not free slots beyond the cap'],
  ],
  'spec/e2e/one-payment.spec.ts': [
    ['X1', 'nine spellings of one base64 text: one is accepted'],
    [
      'X2',
      'twenty spellings of one signature in parallel: one settlement, one call to the merchant, one answer for all',
    ],
  ],
  'spec/e2e/proof.spec.ts': [
    ['H3 H5', 'refuses a header that came twice, and one over 8 KiB'],
    ['X4', 'refuses ${field} with ${reason} and a fresh challenge, whatever the facilitator would answer'],
  ],
  'spec/e2e/relay.spec.ts': [['P8', 'nothing of the caller but what is on the list reaches the merchant']],
  'spec/e2e/replay.spec.ts': [
    ['X5 I6', 'another input or another resource of the same price: 409 "used", and nothing about the payment'],
    ['X5 I2', 'a proof for another resource of the same price is refused before anything moves'],
    ['X18 I2', 'is found on the chain: the same proof collects, and the buyer pays once'],
  ],
  'spec/e2e/stream-memory.spec.ts': [
    ['O6', 'costs the process less than 8 MB while 100,000 events pass, and the others see every one'],
  ],
  'spec/json/strict.spec.ts': [['B4 B6 B8 B9', '${title}: ${reason}']],
  'spec/operator/api/stream.spec.ts': [
    ['O6', 'of live events is cut with more than 1 MiB unsent and counted; the others get every event'],
    ['O6', 'Last-Event-ID ${name} is refused'],
    ['O6', 'leave one to others; the next reader gets Retry-After 5 s, and a slot that was left is free again'],
  ],
  'spec/payments/pricing/amount.spec.ts': [
    ['X20', 'reads ${text.slice(0, 20)} with ${decimals} decimals exactly'],
    ['X20', 'refuses ${JSON.stringify(text.slice(0, 20))} with ${decimals} decimals as ${reason}'],
    ['X20', 'reads any text as a second parser does, or refuses it'],
  ],
  'spec/payments/settlement/accepted-offer.spec.ts': [
    ['X7', 'of before is refused without its token by a process that never made it'],
  ],
  'spec/payments/settlement/verifier.spec.ts': [['X5 X7', '${how} is refused']],
  'spec/payments/x402/create-rail.spec.ts': [
    ['X10', 'lets no facilitator overrule a local check, and does not even ask it'],
  ],
  'spec/payments/x402/evm/account.spec.ts': [
    ['X2 X16 I1', 'agrees with the reference on the digest and on every form of a signature, in every engine'],
  ],
  'spec/payments/x402/facilitator/facilitator.spec.ts': [
    ['X11', 'gives no verdict with ${what}: unavailable before, uncertain after settlement began'],
    ['X11', 'is not followed to another site, nor for ever'],
  ],
  'spec/payments/x402/hostile.spec.ts': [['X10', 'cannot keep an authorization open that no block can take any more']],
  'spec/payments/x402/local/local-rail.spec.ts': [
    ['X14', 'refuses one cancelled between simulation and broadcast, although its own transaction was mined'],
    ['X13', 'recognises a payment that a stranger slips in between simulation and broadcast'],
  ],
  'spec/payments/x402/verify/verify.spec.ts': [
    ['X6', 'names the first check that fails, in the order of the contract'],
    ['X4 X10 I5', '${what}: ${outcome}'],
    ['X4', 'signed for another token, chain, name or version is no signature'],
    ['X6', 'ends at most 600 s after what was offered'],
    ['X6', 'has at least 6 s left, or as many as are needed'],
    ['X8 X19', 'a payer in the range of precompiled contracts is refused, whatever the chain answers'],
  ],
  'spec/payments/x402/wire/proof.spec.ts': [['X1', 'answers anything with a verdict, never with an exception']],
  'spec/resources/backend-request.spec.ts': [['P1', 'whatever the value']],
  'spec/resources/patterns/catastrophes.spec.ts': [['B11', 'do not block a turn: ${catastrophe[0].slice(0, 60)}']],
  'spec/resources/patterns/linear.spec.ts': [
    ['B11', 'means what the ordinary engine means: random patterns on short texts'],
  ],
  'spec/resources/schemas/closed-objects.spec.ts': [['A8 I1', 'refuses ${JSON.stringify(bad)}']],
  'spec/routes/cors.spec.ts': [
    [
      'H8 I10',
      "${route.method} ${route.path} (${route.app}) is ${isForProbes(route) ? 'answered to' : '403 for'} any other",
    ],
    ['H8 I10 O5', '${title}: of any other origin are 403 without CORS headers, also when they ask before'],
    ['O5', '${title}: of a listed origin are answered, may read the payment headers, and send no credentials'],
  ],
  'spec/adapters/origin/adapter.spec.ts': [
    ['H8', 'is named in the challenge by the configured URL, whatever Host says'],
  ],
  'spec/e2e/in-place.spec.ts': [['H7', 'HEAD with a good proof buys nothing, and leaves the proof as good as it was']],
  'spec/routes/management.spec.ts': [
    ['O11', 'shares no route with agents but the probes'],
    ['O11', 'has no route for agents or operators'],
  ],
  'spec/routes/negotiation.spec.ts': [
    ['B1', 'may have ${MAX_BODY_BYTES} bytes, and is 413 with one more'],
    ['B3', 'is 415 in any other type or coding'],
    ['B3', 'is read as JSON in UTF-8, and ${suffixed} as a type that ends in +json'],
  ],
  'spec/routes/operators.spec.ts': [
    ['O3', '${rule} is no token'],
    ['O4', '${MAX_FAILED_ATTEMPTS} wrong ones are answered 401, then 429; a right one always passes'],
  ],
  'spec/routes/request-id.spec.ts': [
    ['H4', "${route.method} ${route.path} (${route.app}) is the caller's when it is legal, else a new one"],
  ],
  'spec/routes/table.spec.ts': [
    ['H7', '${titleOf(route)} is ${route.status}, with its type and its headers for caches'],
  ],
  'spec/routes/unknown.spec.ts': [
    ['O2', '${route.path} looks exactly like no route, for every method'],
    ['O11', '${path} of the app for ${app} is 404 for every method, with a body, and with a token'],
  ],
  'spec/server/http/bounds.spec.ts': [['H5', '100 headers are read, 101 are refused']],
  'spec/server/http/framing.spec.ts': [
    ['H3', '${field} twice is refused by its name, with the same value and with another'],
    ['H3', 'content-length twice is refused with the same value and with another'],
    ['O3', 'a second operator token never authenticates, in whichever order'],
  ],
  'spec/server/http/origin.spec.ts': [
    ['H8', "\"${host}\" is ${served ? 'served' : 'refused'}"],
    ['H8', 'the host of a target in absolute form counts too: neither hides the other'],
    ['O5', '"${origin}" is ${verdict}'],
  ],
  'spec/server/http/wire.spec.ts': [
    ['P7', 'CONNECT gets the envelope'],
    ['B1 I11', '413 goes out with the first byte too many of an endless upload, which is not drained'],
    ['P7', '${what} behind running calls is refused behind their answers'],
    ['H5', 'may have two proofs of 8 KiB in its head, but no 33 KiB'],
    ['P7', 'with Upgrade: ${protocol} is served as a plain request, and tunnels nothing'],
  ],
  'spec/server/limits/client-address.spec.ts': [['D4', 'a header of 32 KiB is read from its end only']],
  'spec/server/limits/rates.spec.ts': [['D3', 'of more clients than are remembered cost no more memory']],
  'spec/sidecar/exposure.spec.ts': [
    ['P5', 'reports a backend on an address of the pod once, and again when it listens there no longer'],
  ],
  'spec/telemetry/log/log.spec.ts': [
    ['D8', 'has ten lines a second of one failure, and one with the number of the others'],
    ['O7', 'a configured secret that a peer quotes does not get through, in any spelling JSON has for it'],
  ],
  'spec/time/recent-map.spec.ts': [['D3', 'never has more keys than its bound']],
  'verification/chaos/checkout/deaths.spec.ts': [
    [
      'A6',
      'with calls of every operation at the backend: 409 until the leases end, one answer each, complete and cancel read back',
    ],
  ],
  'verification/mandates/flips.spec.ts': [['A1', 'is never accepted as a new mandate']],
};
