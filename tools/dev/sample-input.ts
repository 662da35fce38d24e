/** An input that a JSON Schema probably accepts, for a command to try. */

type Schema = Readonly<Record<string, unknown>>;

/** Of the members that it requires, each by its own example, else by its type. */
export function sampleInput(schema: Schema | undefined): unknown {
  return schema === undefined ? {} : sampleOf(schema);
}

function sampleOf(schema: Schema): unknown {
  const { examples, example, const: only, default: usual, enum: choices, type } = schema;
  const named = [Array.isArray(examples) ? examples[0] : undefined, example, only, usual];
  const given = [...named, Array.isArray(choices) ? choices[0] : undefined].find((value) => value !== undefined);
  if (given !== undefined) return given;
  switch (Array.isArray(type) ? type[0] : type) {
    case 'object':
    case undefined:
      return objectOf(schema);
    case 'array':
      return Array.from({ length: Number(schema['minItems'] ?? 0) }, () => sampleOf(section(schema['items'])));
    case 'integer':
    case 'number':
      return schema['minimum'] ?? 1;
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return 'text'.padEnd(Number(schema['minLength'] ?? 0), 't').slice(0, Number(schema['maxLength'] ?? 1_000));
  }
}

function objectOf({ properties, required }: Schema): object {
  const names = Array.isArray(required) ? required.map(String) : [];
  return Object.fromEntries(names.map((name) => [name, sampleOf(section(section(properties)[name]))]));
}

function section(value: unknown): Schema {
  return typeof value === 'object' && value !== null ? (value as Schema) : {};
}
