/** A listener in a process of its own, whose heap is small. It tells its address. */

import { openBareListener } from '../http/bare-listener.ts';

const { url } = await openBareListener([]);
process.send?.(url);
