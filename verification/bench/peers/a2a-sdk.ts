/** The official A2A server as a contestant. */

import { type AgentCard, type Task, TaskState } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import express from 'express';
import { A2A_PATH, CALLED, type Contestant, INPUT_SCHEMA, SEND_QUESTION } from '../contestant.ts';
import { type AskBackend, exact, peerProgram, pooledBackend, servePeer } from '../serve-peer.ts';

const JSON_TYPE = 'application/json';

/**
 * The official server on Express: `jsonRpcHandler` over `DefaultRequestHandler`, its own store in
 * memory, one event an execution. The input is checked against the schema of the gateway's
 * resource; no log, no events. Half of the cost is the backend client of its tool, so that is the
 * cheapest one.
 */
export const a2aSdk: Contestant = {
  id: 'sdk-send-lean',
  suite: 'a2a',
  title: `${exact('@a2a-js/sdk', 'express')}, SendMessage, its tool on a bare undici pool`,
  question: SEND_QUESTION,
  readyPath: '/',
  program: peerProgram(import.meta.filename),
};

if (import.meta.main)
  servePeer((backendUrl) => {
    const handler = new DefaultRequestHandler(card(), new InMemoryTaskStore(), executor(pooledBackend(backendUrl)));
    const channel = jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication });
    return express().use(A2A_PATH, channel);
  });

function executor(ask: AskBackend): AgentExecutor {
  const ajv = new Ajv2020();
  formats.default(ajv);
  const valid = ajv.compile(INPUT_SCHEMA);
  return {
    async execute({ userMessage, taskId, contextId }, events) {
      const content = userMessage.parts[0]?.content;
      if (content?.$case !== 'data') throw new Error('the first part holds no data');
      const { resource, input } = content.value as { readonly resource?: unknown; readonly input?: unknown };
      if (resource !== CALLED || !valid(input)) throw new Error('no such skill, or no such input');
      events.publish(AgentEvent.task(completed(taskId, contextId, await ask(input))));
    },
    async cancelTask() {},
  };
}

function completed(id: string, contextId: string, report: Record<string, unknown>): Task {
  const part = {
    content: { $case: 'data', value: report },
    metadata: undefined,
    filename: '',
    mediaType: JSON_TYPE,
  } as const;
  return {
    id,
    contextId,
    status: { state: TaskState.TASK_STATE_COMPLETED, message: undefined, timestamp: new Date().toISOString() },
    artifacts: [
      {
        artifactId: crypto.randomUUID(),
        name: CALLED,
        description: '',
        parts: [part],
        metadata: undefined,
        extensions: [],
      },
    ],
    history: [],
    metadata: undefined,
  };
}

/** The handler reads only the interface and the input modes of it. */
function card(): AgentCard {
  const [interfaceUrl, modes] = [`http://127.0.0.1${A2A_PATH}`, [JSON_TYPE]];
  return {
    name: 'Bench',
    description: 'Prices and volumes',
    supportedInterfaces: [{ url: interfaceUrl, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' }],
    provider: undefined,
    version: '1.0.0',
    capabilities: { streaming: false, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [],
    signatures: [],
  };
}
