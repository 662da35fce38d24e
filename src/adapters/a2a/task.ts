import { randomUUID } from 'node:crypto';
import type { Members } from '../json-rpc/metadata.ts';

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
 * The result of SendMessage as JSON text: `{"task": Task}` with the members of A2A 1.0 only (a2a
 * 4). Never `history`: it would say the buyer's proof back.
 */
export function taskResult(task: TaskNames, { state, said, artifact, metadata }: TaskOutcome): string {
  const names = `"id":${JSON.stringify(task.taskId)},"contextId":${JSON.stringify(task.contextId)}`;
  const message = said === undefined ? '' : `"message":${agentMessage(task, said)},`;
  const status = `{"state":"${state}",${message}"timestamp":"${new Date().toISOString()}"}`;
  const artifacts = artifact === undefined ? '' : `,"artifacts":[${artifactText(artifact)}]`;
  return `{"task":{${names},"status":${status}${artifacts},"metadata":{${members(metadata)}}}}`;
}

function agentMessage(task: TaskNames, { text, metadata }: NonNullable<TaskOutcome['said']>): string {
  const names = `"contextId":${JSON.stringify(task.contextId)},"taskId":${JSON.stringify(task.taskId)}`;
  const said = `"role":"ROLE_AGENT","parts":[{"text":${JSON.stringify(text)}}]`;
  return `{"messageId":"${randomUUID()}",${names},${said}${whenAny(metadata)}}`;
}

function artifactText({ name, data, metadata }: NonNullable<TaskOutcome['artifact']>): string {
  const parts = `"parts":[{"data":${data},"mediaType":"application/json"}]`;
  return `{"artifactId":"${randomUUID()}","name":${JSON.stringify(name)},${parts}${whenAny(metadata)}}`;
}

function whenAny(metadata: Members): string {
  const written = members(metadata);
  return written === '' ? '' : `,"metadata":{${written}}`;
}

/** Members whose values are JSON text already. Their names are ours, and need no escape. */
function members(texts: Members): string {
  let written = '';
  for (const name in texts) written += `${written === '' ? '' : ','}"${name}":${texts[name]}`;
  return written;
}
