/** Shortest token that draws no warning, characters. Callers of the checkout need it wherever they can come from outside (acp.md 13.8). */
export const STRONG_TOKEN_LENGTH = 16;
