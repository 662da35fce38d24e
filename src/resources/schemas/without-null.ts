/** Schemas of values that are not null. */

import { isObject, type Json, type JsonObject } from '../../json/types.ts';

/** The schema without the null that it names; itself where it names none, or nothing else. */
export function withoutNull(schema: Json): Json {
  if (!isObject(schema)) return schema;
  const { type, enum: values, default: usual, ...others } = schema;
  const rest: JsonObject = { ...others, ...(usual === undefined || usual === null ? {} : { default: usual }) };
  const types = Array.isArray(type) ? type.filter((name: Json) => name !== 'null') : undefined;
  if (types !== undefined && types.length > 0 && types.length < [type].flat().length) {
    const kept = Array.isArray(values) ? { enum: values.filter((value: Json) => value !== null) } : {};
    return { type: types.length === 1 ? (types[0] ?? '') : types, ...rest, ...kept };
  }
  if (type === undefined && Array.isArray(values) && values.includes(null) && values.length > 1)
    return { ...rest, enum: values.filter((value: Json) => value !== null) };
  for (const keyword of ['anyOf', 'oneOf']) {
    const branches = schema[keyword];
    if (!Array.isArray(branches)) continue;
    const kept = (branches as readonly Json[]).filter((branch) => !isNull(branch)).map(withoutNull);
    const isSame = kept.length === branches.length && kept.every((branch, index) => branch === branches[index]);
    if (isSame || kept.length === 0) continue;
    const { [keyword]: _branches, ...beside } = rest;
    const [only] = kept;
    if (kept.length > 1 || !isObject(only) || type !== undefined) return { ...schema, [keyword]: kept };
    return Object.keys(only).some(
      (name) => name in beside && !['title', 'description', 'default', 'examples'].includes(name),
    )
      ? { ...schema, [keyword]: kept }
      : { ...only, ...beside };
  }
  return schema;
}

function isNull(schema: Json): boolean {
  if (!isObject(schema)) return false;
  const { type, const: value, enum: values } = schema;
  return (
    [type].flat().every((name) => name === 'null') ||
    value === null ||
    (Array.isArray(values) && values.every((one) => one === null))
  );
}
