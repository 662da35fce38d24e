/** Reads from an Accept header whether its sender is a browser that a person looks at. */

/** One element of the list, with commas in quotes inside it. */
const ELEMENT = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g;
const PARAMETER = /(?:[^;"]|"(?:[^"\\]|\\.)*"?)+/g;
/** RFC 9110, 12.4.2. */
const WEIGHT = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i;

/**
 * Whether a 402 is written for a person: `text/html` is named with a weight above 0, and
 * `application/json` is not. Wildcards say nothing: programs send them.
 */
export function acceptsPage(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const named = new Map((accept.match(ELEMENT) ?? []).map(readElement));
  return (named.get('text/html') ?? 0) > 0 && (named.get('application/json') ?? 0) === 0;
}

/** A media range in lower case and its weight; 0 for a weight that is none. */
function readElement(element: string): readonly [range: string, weight: number] {
  const [range = '', ...parameters] = (element.match(PARAMETER) ?? []).map((part) => part.trim());
  const weight = parameters.find((parameter) => /^q\s*=/i.test(parameter));
  const value = weight === undefined ? '1' : WEIGHT.exec(weight)?.[1];
  return [range.toLowerCase(), Number(value ?? 0)];
}
