import { bundleOptions } from './deploy/bundle/options.ts';

/**
 * `npm run build`: src/main.ts becomes dist/gateway.mjs, the one file that deploy/Dockerfile ships.
 */
export default bundleOptions('src/main.ts', 'dist');
