/** What an operator has to allow: nothing outside the hash tag of the merchant, no command that a gateway does not send. */
export function leastRights(merchantId: string): readonly string[] {
  return [`~{acg:${merchantId}}:*`, 'resetchannels', '-@all', ...COMMANDS.map((command) => `+${command}`)];
}

/** In a cluster the client asks who has which slot. */
export const CLUSTER_RIGHTS: readonly string[] = ['+cluster|slots', '+cluster|info'];

const COMMANDS = [
  ...['hello', 'auth', 'ping', 'info', 'quit', 'client|setname', 'evalsha', 'eval', 'script|load', 'time', 'wait'],
  ...['get', 'set', 'del', 'hset', 'hget', 'hmget', 'hgetall', 'hdel', 'pexpire'],
  ...[
    'zadd',
    'zrem',
    'zcard',
    'zscore',
    'zrange',
    'zrangebylex',
    'zrevrangebylex',
    'zremrangebyscore',
    'xadd',
    'xrevrange',
  ],
  ...['xrange', 'xread', 'xinfo|stream'],
];
