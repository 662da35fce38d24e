/** Runs a world in the foreground, until a signal or the end of a part of it. */

/** What is run. */
interface Session {
  /** Resolves to one line when a part of it ends by itself. */
  readonly failed: Promise<string>;
  stop(): Promise<void>;
}

/**
 * Opens it and waits. The first signal ends everything in order; one before everything runs, or a
 * second one, ends the process at once. No key is left behind either way.
 * @throws Error when a part ended by itself; what `open` throws
 */
export async function runUntilStopped(open: () => Promise<Session>): Promise<void> {
  const stopped = Promise.withResolvers<string | undefined>();
  let isRunning = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (!isRunning) process.exit(1);
      isRunning = false;
      stopped.resolve(undefined);
    });
  // A reader that has seen enough (`acg dev | head`) ends it as a signal does.
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) =>
    stopped.resolve(code === 'EPIPE' ? undefined : `standard output cannot be written (${code})`),
  );
  const session = await open();
  isRunning = true;
  const reason = await Promise.race([stopped.promise, session.failed]);
  isRunning = false;
  await session.stop();
  if (reason !== undefined) throw new Error(reason);
}
