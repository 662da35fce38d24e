/** The smallest proxy of Express and http-proxy-middleware, in JavaScript: no types to strip. */

import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';

const { PORT, BACKEND_URL } = process.env;

express()
  .use(createProxyMiddleware({ target: BACKEND_URL, changeOrigin: true }))
  .listen(Number(PORT), '127.0.0.1');
process.once('SIGTERM', () => process.exit(0));
