/** Mistakes of the configuration: collected by its checks, thrown together at the start. */

/** One mistake: where, and what would be right. It never holds a configured value. */
export interface ConfigProblem {
  /** `payments.x402.payTo`, `server.allowedOrigins[0]`; `document` for the file as a whole. */
  readonly path: string;
  readonly message: string;
}

/** All problems. Thrown before anything is opened; safe to print. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(`the configuration is refused:\n${problems.map(({ path, message }) => `  ${path}: ${message}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** The path of a member: dotted where the name allows it, else in brackets; `[n]` in lists. */
export function memberPath(parent: string, member: string | number): string {
  if (typeof member === 'number') return `${parent}[${member}]`;
  if (!/^[A-Za-z0-9_$-]{1,128}$/.test(member)) return `${parent}[${JSON.stringify(member.slice(0, 64))}]`;
  return parent === '' ? member : `${parent}.${member}`;
}

/** Collects problems, so that an operator corrects the file once and not once per mistake. */
export class ProblemList {
  readonly #problems = new Map<string, ConfigProblem>();
  /** The paths of the problems, and all above them. */
  readonly #unsound = new Set<string>();

  /** The first problem of a path wins: later ones are usually its consequence. */
  add(path: string, message: string): void {
    if (this.#problems.has(path)) return;
    this.#problems.set(path, { path, message });
    this.#unsound.add(path);
    for (const { index } of path.matchAll(/[.[]/g)) this.#unsound.add(path.slice(0, index));
  }

  /** Whether nothing at or below this path was refused: only then may a check read it. */
  sound(prefix: string): boolean {
    return !this.#unsound.has(prefix) && !this.#problems.has('document');
  }

  /** @throws ConfigError when there is any problem */
  throwIfAny(): void {
    if (this.#problems.size > 0) throw new ConfigError([...this.#problems.values()]);
  }
}
