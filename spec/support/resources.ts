/** One operation of the sample merchant, as a resource of the gateway configuration. */
interface Operation {
  readonly id: string;
  readonly name: string;
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  /** Price in display units of the paid resource. */
  readonly amount?: string;
  readonly properties?: Readonly<Record<string, object>>;
  /** Input properties beyond those named are let through. */
  readonly open?: boolean;
  readonly mimeType?: string;
  readonly timeoutMs?: number;
}

const DEFAULT_AMOUNT = '0.001';
const TEXT = { type: 'string', minLength: 1, maxLength: 64 } as const;
const COUNT = { type: 'integer', minimum: 0, maximum: 1_000 } as const;
const STATUS = { type: 'integer', minimum: 400, maximum: 599 } as const;
const SIZE = { type: 'integer', minimum: 0, maximum: 67_108_864 } as const;

const OPERATIONS: readonly Operation[] = [
  { id: 'market_report', name: 'Market report', path: '/reports/{city}', amount: '0.01', properties: { city: TEXT } },
  { id: 'price_list', name: 'Price list', path: '/prices.csv', amount: '0.005', mimeType: 'text/csv' },
  { id: 'archive', name: 'Archive', path: '/archive.bin', amount: '0.02', mimeType: 'application/octet-stream' },
  { id: 'echo', name: 'Echo', method: 'POST', path: '/echo', open: true },
  { id: 'request_headers', name: 'Request headers', method: 'POST', path: '/echo/headers', open: true },
  { id: 'greeting', name: 'Greeting', path: '/greeting', mimeType: 'text/plain' },
  { id: 'noisy', name: 'Noisy headers', path: '/noisy' },
  { id: 'nothing', name: 'Nothing', path: '/nothing' },
  { id: 'slow', name: 'Slow stream', path: '/slow', properties: { chunks: COUNT, everyMs: COUNT } },
  { id: 'bytes', name: 'Bytes', path: '/bytes', properties: { size: SIZE, undeclared: { type: 'boolean' } } },
  { id: 'failing', name: 'Failing', path: '/fail/{status}', properties: { status: STATUS } },
  { id: 'failing_post', name: 'Failing', method: 'POST', path: '/fail/{status}', properties: { status: STATUS } },
  { id: 'flaky', name: 'Flaky', path: '/flaky/{failures}', properties: { failures: COUNT } },
  { id: 'flaky_post', name: 'Flaky', method: 'POST', path: '/flaky/{failures}', properties: { failures: COUNT } },
  { id: 'redirecting', name: 'Redirecting', path: '/redirect' },
  { id: 'resetting', name: 'Resetting', path: '/reset' },
  { id: 'resetting_post', name: 'Resetting', method: 'POST', path: '/reset' },
  { id: 'broken', name: 'Broken off', path: '/broken' },
  { id: 'silent', name: 'Silent', path: '/silent', timeoutMs: 500 },
  { id: 'held', name: 'Held', path: '/held', timeoutMs: 20_000 },
  { id: 'held_post', name: 'Held', method: 'POST', path: '/held', timeoutMs: 20_000 },
];

/** Every operation twice: `<id>` is paid, `free_<id>` is not; and `cities`, free. */
export function sampleResources(currency: string): Readonly<Record<string, object>> {
  const resources: Record<string, object> = {
    cities: resource({ id: 'cities', name: 'Cities', path: '/cities' }, { type: 'free' }, []),
  };
  for (const operation of OPERATIONS) {
    const pricing = { type: 'fixed', amount: operation.amount ?? DEFAULT_AMOUNT, currency };
    resources[operation.id] = resource(operation, pricing, ['x402']);
    resources[`free_${operation.id}`] = resource(operation, { type: 'free' }, []);
  }
  return resources;
}

function resource(operation: Operation, pricing: object, payments: readonly string[]): object {
  const { name, path, method = 'GET', properties = {}, open = false, mimeType, timeoutMs } = operation;
  const required = Object.keys(properties).filter((property) => path.includes(`{${property}}`));
  return {
    name,
    description: `${name} of the sample merchant`,
    inputSchema: { type: 'object', properties, required, additionalProperties: open },
    ...(mimeType === undefined ? {} : { mimeType }),
    backend: { method, path, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
    pricing,
    expose: ['http', 'mcp', 'a2a'],
    payments,
  };
}

/** The market report, sold under a mandate. */
export function membersReport(currency: string): object {
  const report = sampleResources(currency)['market_report'];
  return { ...report, name: 'Members report', authorization: { required: ['ap2'] } };
}

/** What `make run` shows; the other operations are for tests of failures. */
const SHOWCASE: ReadonlySet<string> = new Set([
  'cities',
  'market_report',
  'price_list',
  'archive',
  'greeting',
  'free_greeting',
  'echo',
  'free_echo',
  'flaky',
]);

/** Overrides for `worldConfig` that remove the other operations. */
export function showcaseOnly(currency: string): Readonly<Record<string, undefined>> {
  const hidden = Object.keys(sampleResources(currency)).filter((id) => !SHOWCASE.has(id));
  return Object.fromEntries(hidden.map((id) => [id, undefined]));
}
