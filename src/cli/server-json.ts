/** `acg server-json`: the document with which a merchant publishes in the MCP registry. */

import type { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import { type ServerJsonChoices, serverJson } from '../resources/server-json.ts';
import { CONFIG_OPTION, defineCommand } from './program.ts';

interface ServerJsonArgs extends ServerJsonChoices {
  readonly config?: string;
}

export function serverJsonCommand(): Command {
  const about = `Prints the server.json of the MCP endpoint, with which it is published in the MCP registry: its name is the domain of
merchant.publicBaseUrl in reverse, which you prove there.`;
  return defineCommand('server-json', about, 'acg server-json --config gateway.yaml > server.json')
    .option(...CONFIG_OPTION)
    .option('--description <text>', 'at most 100 characters; else the names of the tools')
    .option('--version <version>', 'of what is published, such as 1.2.0; else that of the gateway')
    .action(({ config, ...choices }: ServerJsonArgs) => {
      process.stdout.write(serverJson(loadConfig({ path: config, env: process.env }), choices));
    });
}
