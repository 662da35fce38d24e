/** Writes an outcome as a task of A2A 1.0. */

import { randomUUID } from 'node:crypto';
import { isoTime } from '../../time/iso-time.ts';
import { type Members, membersText } from '../json-rpc/metadata.ts';

/** The states that a call can end in (A2A 1.0, TaskState, ProtoJSON spelling). */
export type TaskState = 'TASK_STATE_COMPLETED' | 'TASK_STATE_FAILED';

/** The ids of a task, which its message repeats. */
interface TaskNames {
  readonly taskId: string;
  readonly contextId: string;
}

export interface TaskOutcome {
  readonly state: TaskState;
  /** One sentence of the agent, with the metadata of the x402 extension. */
  readonly message?: { readonly text: string; readonly metadata: Members };
  readonly artifact: {
    readonly name: string;
    /** A JSON object as text, which is inserted as it is. */
    readonly data: string;
    readonly metadata: Members;
  };
  readonly metadata: Members;
}

/**
 * The result of SendMessage as JSON text: `{"task": Task}` with members of A2A 1.0 only (a2a 4),
 * and never `history`, which would repeat the buyer's proof.
 */
export function taskResult({ state, message, artifact, metadata }: TaskOutcome): string {
  const task: TaskNames = { taskId: randomUUID(), contextId: randomUUID() };
  const names = `"id":"${task.taskId}","contextId":"${task.contextId}"`;
  const messageMember = message === undefined ? '' : `"message":${agentMessage(task, message)},`;
  const status = `{"state":"${state}",${messageMember}"timestamp":"${isoTime()}"}`;
  return `{"task":{${names},"status":${status},"artifacts":[${artifactText(artifact)}],"metadata":{${membersText(metadata)}}}}`;
}

function agentMessage(task: TaskNames, { text, metadata }: NonNullable<TaskOutcome['message']>): string {
  const names = `"contextId":"${task.contextId}","taskId":"${task.taskId}"`;
  const content = `"role":"ROLE_AGENT","parts":[{"text":${JSON.stringify(text)}}]`;
  return `{"messageId":"${randomUUID()}",${names},${content}${metadataMember(metadata)}}`;
}

function artifactText({ name, data, metadata }: TaskOutcome['artifact']): string {
  const parts = `"parts":[{"data":${data},"mediaType":"application/json"}]`;
  return `{"artifactId":"${randomUUID()}","name":${JSON.stringify(name)},${parts}${metadataMember(metadata)}}`;
}

function metadataMember(metadata: Members): string {
  const written = membersText(metadata);
  return written === '' ? '' : `,"metadata":{${written}}`;
}
