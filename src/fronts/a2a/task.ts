import { randomUUID } from 'node:crypto';

/** The states of a task that a call can end in (A2A 1.0, TaskState, ProtoJSON spelling). */
export type TaskState =
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_INPUT_REQUIRED'
  | 'TASK_STATE_CANCELED';

/** The names of a task. The ids of follow-ups are those of their task. */
export interface TaskNames {
  readonly taskId: string;
  readonly contextId: string;
}

/** Members of a metadata object, each value as JSON text. */
export type Members = Readonly<Record<string, string>>;

/** An outcome as a task. */
export interface TaskOutcome {
  readonly state: TaskState;
  /** One sentence of the agent, with what the x402 extension says in metadata. */
  readonly said?: { readonly text: string; readonly metadata: Members };
  readonly artifact?: {
    readonly name: string;
    /** A JSON object as text, put in as it is. */
    readonly data: string;
    readonly metadata: Members;
  };
  readonly metadata: Members;
}

/** A task that was not there before. */
export function newTask(): TaskNames {
  return { taskId: randomUUID(), contextId: randomUUID() };
}

/**
 * The result of SendMessage as JSON text: `{"task": Task}` with the members of A2A 1.0 only (reference a2a.md, section 2). Never
 * `history`: it would say the buyer's proof back.
 */
export function taskResult({ taskId, contextId }: TaskNames, outcome: TaskOutcome): string {
  const { state, said, artifact, metadata } = outcome;
  const status = {
    state: JSON.stringify(state),
    ...(said === undefined ? {} : { message: agentMessage({ taskId, contextId }, said) }),
    timestamp: JSON.stringify(new Date().toISOString()),
  };
  return members({
    task: members({
      id: JSON.stringify(taskId),
      contextId: JSON.stringify(contextId),
      status: members(status),
      ...(artifact === undefined ? {} : { artifacts: `[${artifactText(artifact)}]` }),
      metadata: members(metadata),
    }),
  });
}

function agentMessage(task: TaskNames, { text, metadata }: NonNullable<TaskOutcome['said']>): string {
  return members({
    messageId: JSON.stringify(randomUUID()),
    contextId: JSON.stringify(task.contextId),
    taskId: JSON.stringify(task.taskId),
    role: '"ROLE_AGENT"',
    parts: JSON.stringify([{ text }]),
    ...whenAny(metadata),
  });
}

function artifactText({ name, data, metadata }: NonNullable<TaskOutcome['artifact']>): string {
  return members({
    artifactId: JSON.stringify(randomUUID()),
    name: JSON.stringify(name),
    parts: `[{"data":${data},"mediaType":"application/json"}]`,
    ...whenAny(metadata),
  });
}

function whenAny(metadata: Members): Members {
  return Object.keys(metadata).length === 0 ? {} : { metadata: members(metadata) };
}

/** An object of values that are JSON text already. */
function members(texts: Members): string {
  const written = Object.entries(texts).map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  return `{${written.join(',')}}`;
}
