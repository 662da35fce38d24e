/** The proxy helper of Hono on Node, without a log, as a contestant. */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { proxy } from 'hono/proxy';

const { PORT, BACKEND_URL } = process.env;

const app = new Hono();
app.all('*', (context) => proxy(`${BACKEND_URL}${context.req.path}`, context.req));
serve({ fetch: app.fetch, port: Number(PORT), hostname: '127.0.0.1' });
process.once('SIGTERM', () => process.exit(0));
