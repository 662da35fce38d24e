/** Shortest token that draws no warning, characters. Callers of the checkout need it wherever they can come from outside (acp 13.7). */
export const STRONG_TOKEN_LENGTH = 16;
