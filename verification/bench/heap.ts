/** Reads the heap of a Node process through its inspector. */

/** The heap of one process. */
export interface Heap {
  /** What is in use after a full collection, bytes. */
  usedBytes(): Promise<number>;
  close(): void;
}

interface Answer {
  readonly id?: number;
  readonly result?: { readonly usedSize?: number };
  readonly error?: { readonly message: string };
}

/** Connects to the inspector on a port of 127.0.0.1. @throws Error when none is there */
export async function openHeap(port: number): Promise<Heap> {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as readonly {
    readonly webSocketDebuggerUrl: string;
  }[];
  const url = targets[0]?.webSocketDebuggerUrl;
  if (url === undefined) throw new Error('the process has no inspector');
  const socket = new WebSocket(url);
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', () => reject(new Error('the inspector refuses')));
  });
  let asked = 0;
  const waiting = new Map<number, (answer: Answer) => void>();
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer;
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer);
  });
  const ask = (method: string): Promise<Answer> => {
    asked += 1;
    const id = asked;
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method }));
    return answered;
  };
  return {
    async usedBytes() {
      // Twice: the first may leave what only finalizers held.
      await ask('HeapProfiler.collectGarbage');
      await ask('HeapProfiler.collectGarbage');
      const { result, error } = await ask('Runtime.getHeapUsage');
      if (result?.usedSize === undefined) throw new Error(error?.message ?? 'no heap usage');
      return result.usedSize;
    },
    close: () => socket.close(),
  };
}
