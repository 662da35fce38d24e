/** `reason` of an undelivered record whose request certainly never reached the merchant: any method may be sent again. */
export const REQUEST_NOT_WRITTEN = 'request_not_written';
/** Its opposite, from the moment the request may leave. */
export const REQUEST_MAY_BE_WRITTEN = 'request_may_be_written';
/** The merchant answered, the answer is kept: nothing need be sent again. */
export const ANSWER_KEPT = 'answer_kept';
