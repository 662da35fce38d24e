import { temporaryDirectory } from '../../store/temporary.ts';
import { sqliteBed } from './log-bed.ts';
import { logContract } from './log-contract.ts';

const directory = temporaryDirectory();

logContract('sqlite', async () => sqliteBed(directory));
