/** What the merchants of the slip table sell, as the gateway's resources have it. */

/** One sold operation: its template, and one target that names it plainly. */
export interface SoldOperation {
  readonly id: string;
  readonly method: 'GET' | 'POST';
  readonly template: string;
  readonly target: string;
  /** Whether it is sold at its own address; else only through other channels. */
  readonly inPlace: boolean;
}

export const SOLD: readonly SoldOperation[] = [
  { id: 'report', method: 'GET', template: '/reports/{city}', target: '/reports/berlin', inPlace: true },
  { id: 'prices', method: 'GET', template: '/prices.csv', target: '/prices.csv', inPlace: false },
  { id: 'confirm', method: 'POST', template: '/orders/{id}/confirm', target: '/orders/42/confirm', inPlace: true },
];
