import express from 'express';
import { createDoor } from '../../../src/overload/door.ts';
import { createListener } from '../../../src/server.ts';
const door = createDoor({ shedding: () => 'overload', mounts: new Map(), draining: () => false, onShed: () => undefined });
const l = createListener(express(), () => false, () => undefined, 4096, door);
await l.listen('127.0.0.1', 39123);
process.on('SIGINT', () => process.exit(0));
