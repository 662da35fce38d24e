import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { createProxyMiddleware, type Plugin } from 'http-proxy-middleware';

/** Belongs to no client: what happens to a client's connection cannot reach the merchant's call. Never connected. */
const NO_CLIENT = new Socket();

/** A request that came from no socket, with the exchange it stands for. */
class DetachedRequest<Cargo> extends IncomingMessage {
  readonly cargo: Cargo;

  constructor(cargo: Cargo) {
    super(NO_CLIENT);
    this.cargo = cargo;
    // The real path was built and checked before the call was priced; here it would only be parsed once more.
    this.url = '/';
    this.method = 'GET';
  }
}

/**
 * http-proxy-middleware in capture mode: created once with a fixed target and none of its own plugins, it carries each cargo over a
 * detached request/response pair to `transport`, which takes the place of its `node:http` transport. So every channel gets the
 * merchant's answer as a value, and no header, redirect or error page of the middleware can reach a caller.
 */
export function createFrame<Cargo>(
  target: URL,
  transport: (cargo: Cargo) => void,
): (cargo: Cargo, refused: (cause: unknown) => void) => void {
  const plugin: Plugin = (proxy) => {
    // The passes of httpxy have no names. Should a later version name them, this throws at start.
    proxy.before('web', '', (request) => {
      if (!(request instanceof DetachedRequest)) throw new TypeError('only detached requests enter the frame');
      transport(request.cargo);
      return true;
    });
    // Failures also come through `next`; without a listener the emitter would throw them a second time.
    proxy.on('error', () => {});
  };
  const middleware = createProxyMiddleware({ target, ejectPlugins: true, selfHandleResponse: true, plugins: [plugin] });
  return (cargo, refused) => {
    const request = new DetachedRequest(cargo);
    // `next` is called only when the middleware did not take the request.
    middleware(request, new ServerResponse(request), refused).catch(refused);
  };
}
