export const OPERATOR_TOKEN = "e2e-operator-token";

/** What no log may hold, whatever a test did: signing keys, API keys, tokens, keys of secrets, signatures. */
const SECRET = new RegExp(
  `whsec_\\w|hlk_[a-z0-9]+_[\\w-]{20}|${OPERATOR_TOKEN}|Bearer |v1a?,[\\w+/]{40}|:[\\w+/]{43}=`,
);

/** The first line that holds one. */
export const findLeak = (printed: string): string | undefined => printed.split("\n").find((line) => SECRET.test(line));
