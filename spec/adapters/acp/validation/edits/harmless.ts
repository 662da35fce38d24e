/** Edits that change no verdict of any document, and why. */
export const HARMLESS: readonly { readonly title: RegExp; readonly reason: string }[] = [
  {
    title: /^(fulfillment-option FulfillmentOption|message Message)\w+: (drop type|nullable|un-require type)$/,
    reason: 'the definition that chooses among the forms demands an object with a type',
  },
  {
    title:
      /^(fulfillment-option FulfillmentOption|message Message): (drop discriminator|drop required|un-require type)$/,
    reason: 'the constants of the forms choose as well; the discriminator is there for what the fault points at',
  },
  {
    title: /^request AuthenticationResult\/if(: require outcome|\/properties\/outcome: enum with zz_unknown)$/,
    reason: 'the outcome itself is required and has no such value',
  },
  {
    title:
      /^(request IntentTrace\/properties\/reason_code|capabilities InterventionCapabilities\/properties\/supported\/items): (drop type|nullable)$/,
    reason: 'the list of values implies it; the type is what the wire builds keep',
  },
  {
    title: /^capabilities Capabilities\/properties\/extensions: also oneOf$/,
    reason: 'no item fits both forms, and there is at least one',
  },
  {
    title: /^session CheckoutSessionWithOrder: (drop type|nullable)$/,
    reason: 'the session that it refers to is an object',
  },
];
