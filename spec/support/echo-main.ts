/** Sends one message over a WebSocket and prints what comes back. */

const [url, message] = process.argv.slice(2);
if (url === undefined || message === undefined) {
  console.error('usage: npm run -s echo -- <URL> <message>');
  process.exitCode = 2;
} else {
  const socket = new WebSocket(url.replace(/^http/, 'ws'));
  socket.addEventListener('open', () => socket.send(message));
  socket.addEventListener('message', ({ data }) => {
    console.log(String(data));
    socket.close();
  });
  socket.addEventListener('error', () => {
    console.error(`no WebSocket at ${url}`);
    process.exitCode = 1;
  });
}
