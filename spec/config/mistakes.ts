import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** A mistake in a configuration, and all that is said of it. */
export interface Mistake {
  readonly title: string;
  readonly from?: string;
  readonly pattern?: string;
  readonly to: string;
  readonly said: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly together?: boolean;
}

interface Form {
  readonly text: string;
  readonly mistakes: readonly Mistake[];
}

export const FORMS = parse(readFileSync(join(import.meta.dirname, 'mistakes.yaml'), 'utf8')) as Readonly<
  Record<'long' | 'short', Form>
>;
