/** A field of a record is sealed with a key that is not here. Who meets it leaves the record to the chain, its buyer or the operator. */
export class UnreadableRecord extends Error {
  /** @param field Of the record; never its content. */
  constructor(field: 'proof' | 'backendRequest') {
    super(`${field} is sealed with a key that is not in storage.sealing.keys`);
    this.name = 'UnreadableRecord';
  }
}
