/** How this program is called from a shell: as installed, or in a checkout. */
export const PROGRAM = process.argv[1]?.endsWith('.ts') === true ? 'npm run -s acg --' : 'acg';
