/** Mistakes of the configuration: collected by its checks, thrown together at the start. */

/** One mistake: where, and what would be right. It never holds a configured value. */
export interface ConfigProblem {
  /** `payments.x402.payTo`, `server.allowedOrigins[0]`; `document` for the file as a whole. */
  readonly path: string;
  readonly message: string;
  /** Absent for a mistake that no text has, such as one of an environment variable. */
  readonly place?: ProblemPlace;
}

/** The place of a mistake in a text. */
export interface ProblemPlace {
  /** As it was named; undefined for a text that is no file. */
  readonly file: string | undefined;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units. */
  readonly column: number;
}

/** All problems. Thrown before anything is opened; safe to print. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(`the configuration is refused:\n${problems.map((problem) => `  ${problemLine(problem)}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** `config.yaml:12:5 payments.x402.payTo: must be …`. */
export function problemLine({ path, message, place }: ConfigProblem): string {
  if (place === undefined) return `${path}: ${message}`;
  const { file, line, column } = place;
  const where = file === undefined ? `line ${line}, column ${column}` : `${file}:${line}:${column}`;
  return `${where} ${path}: ${message}`;
}

/** Runs each check, so that one run names the problems of all. @throws ConfigError */
export function checkAll<Results extends readonly unknown[]>(
  ...checks: { readonly [Index in keyof Results]: () => Results[Index] }
): Results {
  const problems: ConfigProblem[] = [];
  const results = checks.map((check) => {
    try {
      return check();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
      return undefined;
    }
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return results as unknown as Results;
}

/** The path of a member: dotted where the name allows it, else in brackets; `[n]` in lists. */
export function memberPath(parent: string, member: string | number): string {
  if (typeof member === 'number') return `${parent}[${member}]`;
  if (!/^[A-Za-z0-9_$-]{1,128}$/.test(member)) return `${parent}[${JSON.stringify(member.slice(0, 64))}]`;
  return parent === '' ? member : `${parent}.${member}`;
}

/** The paths of the mappings and lists around a path, without the whole document. */
export function pathsAbove(path: string): readonly string[] {
  return [...path.matchAll(/[.[]/g)].map(({ index }) => path.slice(0, index)).filter((above) => above !== '');
}

/** Collects problems, so that an operator corrects the file once and not once per mistake. */
export class ProblemList {
  readonly #problems = new Map<string, ConfigProblem>();
  /** The doubted paths, those of the problems among them, and all above them. */
  readonly #unsound = new Set<string>();
  readonly #doubted = new Set<string>();

  /** The first problem of a path wins: later ones are usually its consequence. */
  add(path: string, message: string): void {
    if (this.#problems.has(path)) return;
    this.#problems.set(path, { path, message });
    this.doubt(path);
  }

  /** Makes a path unsound whose mistake is told elsewhere: its key is mistyped, for example. */
  doubt(path: string): void {
    this.#doubted.add(path);
    for (const part of [path, ...pathsAbove(path)]) this.#unsound.add(part);
  }

  /** Whether nothing at, below or above these paths was refused: only then may rules read them. */
  sound(...paths: readonly string[]): boolean {
    return paths.every((path) => !this.#unsound.has(path) && this.readable(path));
  }

  /** Whether nothing at or above a mapping or a list was refused; members of it may be. */
  readable(path: string): boolean {
    return !['document', path, ...pathsAbove(path)].some((one) => this.#doubted.has(one));
  }

  /** @throws ConfigError when there is any problem */
  throwIfAny(): void {
    if (this.#problems.size > 0) throw new ConfigError([...this.#problems.values()]);
  }
}
