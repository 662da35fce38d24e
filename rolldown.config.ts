import { bundleOptions } from './deploy/bundle/options.ts';

/**
 * `npm run build`: src/main.ts becomes dist/gateway.mjs and its chunks, which deploy/Dockerfile
 * ships.
 */
export default bundleOptions('src/main.ts', 'dist');
