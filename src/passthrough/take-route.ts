/** The middleware that sends each request where its route says, before any other reads it. */

import type { RequestHandler, Response } from 'express';
import type { InPlaceRoute, RequestLine, Route } from './route.ts';

/**
 * Takes requests that are not the gateway's own out of the way of its routes: `pass` answers what
 * passes, and a sale in place goes on with its route noted.
 */
export function takeRoute(routeOf: (req: RequestLine) => Route, pass: RequestHandler): RequestHandler {
  return function takeRoute(req, res, next) {
    const route = routeOf(req);
    if (route.kind === 'refused') throw route.error;
    if (route.kind === 'pass') return pass(req, res, next);
    if (route.kind === 'in_place') (res.locals as { inPlace?: InPlaceRoute }).inPlace = route.inPlace;
    next();
  };
}

/** Enters the handlers of sales in place only for them. */
export function onlyInPlace(router: RequestHandler): RequestHandler {
  return function onlyInPlace(req, res, next) {
    if (inPlaceOf(res) === undefined) next();
    else router(req, res, next);
  };
}

/** The route of a sale in place; undefined for every other request. */
export function inPlaceOf(res: Response): InPlaceRoute | undefined {
  return (res.locals as { inPlace?: InPlaceRoute }).inPlace;
}
