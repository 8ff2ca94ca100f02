import { eventually } from "../eventually.ts";
import { RULES } from "./commands.ts";
import { createReader, type Outcome, type Reader, type Terminal } from "./reader.ts";
import { mismatch } from "./shown.ts";
import { freePort } from "../relay-process.ts";

/** How long a reader looks again until an answer is as the page shows it, or a conflict is over. */
const PATIENCE_MS = 120_000;

/** One person, one clone, one relay; several pages one after the other. */
export interface Session {
  reader: Reader;
  /** What the pages know as port 9000. */
  receiverPort: number;
  /** As the page says; a relay that runs already stays as it is. */
  startRelay(command?: string): Promise<void>;
  /** Makes a key be at hand. */
  seed(): Promise<void>;
  /** Runs a receiver on that port, instead of one that a page before has started. */
  startReceiver(command: string): Promise<void>;
  /** What the seed's receiver has shown so far. */
  seeded(): string;
  /** Does what a page says, and throws where it does not come out as shown. `shown` is the answer to the last curl. */
  follow(command: string, shown?: unknown): Promise<Outcome | void>;
  /** A text with what a reader would put for its placeholders. */
  fillIn(text: string): string;
  /** At the top of a new page nothing is at hand but a key of the seed. */
  turnPage(): Promise<void>;
  close(): Promise<void>;
}

export async function createSession(): Promise<Session> {
  const reader = await createReader();
  const receiverPort = await freePort();
  const copied = new Map<string, string>();
  let relay: Terminal | null = null;
  let seed: Terminal | null = null;
  let receiver: Terminal | null = null;

  function fillIn(text: string): string {
    return (
      text
        .replaceAll("localhost:8787", `localhost:${reader.port}`)
        // What the page of deploying calls a relay out there is the one here.
        .replaceAll("https://hooks.example.com", `http://localhost:${reader.port}`)
        .replaceAll("Bearer OPERATOR_TOKEN", "Bearer dev-operator-token")
        .replaceAll(/(localhost:|listen\()9000/g, `$1${receiverPort}`)
        .replaceAll(/\b([a-z]+)_…/g, (_, prefix: string) => known(prefix))
        .replaceAll(/(?<![$\w])(TENANT|ENDPOINT|DELIVERY|EVENT)_ID\b/g, (_, noun: string) => known(PREFIX_OF[noun]!))
    );
  }

  function known(prefix: string): string {
    const value = copied.get(prefix);
    if (value === undefined) throw new Error(`Nothing has shown a reader what to put for ${prefix}_…`);
    return value;
  }

  const session: Session = {
    reader,
    receiverPort,
    async startRelay(command = "npm start") {
      relay ??= await reader.start(command, new RegExp(`Hooklane ready on http://localhost:${reader.port}`));
    },
    async seed() {
      await session.startRelay();
      seed ??= await reader.start("npm run seed", /DELIVERY_ID\/attempts.*\n/);
      const key = /export KEY=(hlk_\S+)/.exec(seed.printed())?.[1];
      copied.set("hlk", key!);
    },
    async startReceiver(command) {
      await receiver?.stop();
      receiver = await reader.start(command, /^/);
      await eventually(() => fetch(`http://localhost:${receiverPort}`).catch(() => null));
    },
    seeded: () => seed?.printed() ?? "",
    async follow(command, shown) {
      const rule = RULES.find((one) => one.command.test(command));
      if (!rule) throw new Error(`No rule of test/e2e/support/docs/commands.ts knows this command: ${command}`);
      if (/localhost:8787|hooks\.example\.com/.test(command)) await session.startRelay();
      if (/\bhlk_…/.test(command) && !copied.has("hlk")) await session.seed();
      const filled = fillIn(command);
      const giveUpAt = Date.now() + PATIENCE_MS;
      for (;;) {
        const outcome = await rule.run(session, filled);
        if (!outcome || outcome.answers.length === 0) return outcome;
        for (const { body } of outcome.answers) copyFrom(body, copied);
        const wrong = whatIsWrong(outcome, shown);
        if (wrong === null) return outcome;
        const mayChange = outcome.answers.at(-1)!.status === 409 || / -X POST| -d /.test(command) === false;
        if (!mayChange || Date.now() > giveUpAt) throw new Error(`${command}\n${wrong}\n${outcome.printed}`);
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    },
    fillIn,
    async turnPage() {
      copied.clear();
      await reader.run("unset KEY api auth op ENDPOINT DELIVERY EVENT SUBSCRIPTION");
    },
    close: () => reader.close(),
  };
  return session;
}

/** What is shown once, by the name of its field. */
const ONCE: Record<string, string> = { key: "hlk", secret: "whsec" };
const PREFIX_OF: Record<string, string> = { TENANT: "ten", ENDPOINT: "ep", DELIVERY: "dlv", EVENT: "evt" };

/** A problem must be shown, anything else is a success. */
function whatIsWrong({ answers }: Outcome, shown: unknown): string | null {
  const shownStatus = (shown as { status?: unknown } | undefined)?.status;
  for (const [i, { status, body }] of answers.entries()) {
    const isLast = i === answers.length - 1;
    const isProblemShown = isLast && typeof shownStatus === "number";
    if (isProblemShown ? status !== shownStatus : status < 200 || status > 299) return `was answered ${status}`;
    const different = isLast && shown !== undefined ? mismatch(shown, body) : null;
    if (different !== null) return different;
  }
  return null;
}

/** What a reader copies out of an answer: of each kind of id the first it holds, and a key. */
function copyFrom(answer: unknown, copied: Map<string, string>): void {
  const found = new Map<string, string>();
  JSON.stringify(answer, (name, value: unknown) => {
    if (typeof value !== "string") return value;
    const prefix = ONCE[name] ?? /^(ten|src|ep|sub|evt|dlv|sec|rpl)_[0-9a-z]+$/.exec(value)?.[1];
    if (prefix && !found.has(prefix)) found.set(prefix, value);
    return value;
  });
  for (const [prefix, value] of found) copied.set(prefix, value);
}
