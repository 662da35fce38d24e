/** The proxy of Fastify, with its log on, as a contestant. */
import proxy from '@fastify/http-proxy';
import Fastify from 'fastify';

const { PORT, BACKEND_URL } = process.env;

const app = Fastify({ logger: true });
await app.register(proxy, { upstream: BACKEND_URL });
await app.listen({ port: Number(PORT), host: '127.0.0.1' });
process.once('SIGTERM', () => process.exit(0));
