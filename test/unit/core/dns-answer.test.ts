import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { judgeHost } from "../../../src/core/dns-answer.ts";

const A = 1;
const CNAME = 5;
const AAAA = 28;
const RRSIG = 46;

type Answered = [type: number, data: string, ttl?: number];

const answer = (records: Answered[], over: object = {}) =>
  JSON.stringify({
    Status: 0,
    TC: false,
    Question: [{ name: "hooks.example.com", type: A }],
    Answer: records.map(([type, data, TTL = 300]) => ({ name: "hooks.example.com", type, TTL, data })),
    ...over,
  });
const nothing = JSON.stringify({ Status: 0, Question: [{ name: "hooks.example.com." }] });

function judge(...bodies: string[]): string {
  const judged = judgeHost("hooks.example.com", bodies);
  return judged.ok ? `${judged.value.verdict} ${judged.value.ttlSeconds}` : judged.error;
}

describe("a host", () => {
  test.each<[string, string, string[]]>([
    ["of both families is public", "public 60", [answer([[A, "8.8.8.8"]]), answer([[AAAA, "2600::1", 60]])]],
    ["of one family is public", "public 300", [answer([[A, "8.8.8.8"]]), nothing]],
    ["of IPv6 alone is public", "public 300", [nothing, answer([[AAAA, "2600::1"]])]],
    [
      "of one private address among many is blocked",
      "blocked 5",
      [
        answer([
          [A, "8.8.8.8"],
          [A, "10.0.0.1", 5],
          [A, "1.1.1.1"],
        ]),
        nothing,
      ],
    ],
    [
      "that is private by IPv6 alone is blocked",
      "blocked 300",
      [answer([[A, "8.8.8.8"]]), answer([[AAAA, "fd00::1"]])],
    ],
    ["of the metadata service is blocked", "blocked 300", [answer([[A, "169.254.169.254"]]), nothing]],
    [
      "that filters answer for with no address is blocked",
      "blocked 300",
      [answer([[A, "0.0.0.0"]]), answer([[AAAA, "::"]])],
    ],
    ["of an IPv4-mapped private address is blocked", "blocked 300", [nothing, answer([[AAAA, "::ffff:10.0.0.1"]])]],
    ["of a translated private address is blocked", "blocked 300", [nothing, answer([[AAAA, "64:ff9b::a00:1"]])]],
    ["of a translated public address is public", "public 300", [nothing, answer([[AAAA, "64:ff9b::808:808"]])]],
    [
      "whose records stand in the other's answer is judged by them",
      "blocked 300",
      [
        answer([
          [AAAA, "fd00::1"],
          [A, "8.8.8.8"],
        ]),
        nothing,
      ],
    ],
    [
      "at the end of a chain is judged by that end, for as long as its shortest link",
      "public 7",
      [
        answer([
          [CNAME, "a.example.net.", 7],
          [A, "8.8.8.8"],
        ]),
        nothing,
      ],
    ],
    [
      "whose chain ends in a private address is blocked",
      "blocked 300",
      [
        answer([
          [CNAME, "internal.example.net."],
          [A, "192.168.0.1"],
        ]),
        nothing,
      ],
    ],
    ["whose chain ends nowhere is unresolvable", "unresolvable 0", [answer([[CNAME, "a.example.net."]]), nothing]],
    [
      "with signatures among its records is judged by its addresses",
      "public 300",
      [
        answer([
          [A, "8.8.8.8"],
          [RRSIG, "A 8 3 300 …"],
        ]),
        nothing,
      ],
    ],
    ["without any address is unresolvable", "unresolvable 0", [nothing, nothing]],
    ["that does not exist is unresolvable", "unresolvable 0", [answer([], { Status: 3 }), answer([], { Status: 3 })]],
    ["whose servers fail is unresolvable", "unresolvable 0", [answer([], { Status: 2 }), answer([], { Status: 2 })]],
    [
      "of which one family cannot be known is not public",
      "unresolvable 0",
      [answer([[A, "8.8.8.8"]]), answer([], { Status: 2 })],
    ],
    ["that blocks is blocked, whatever the other answer is", "blocked 300", [answer([[A, "10.0.0.1"]]), "<html>"]],
    ["of no time to live is not remembered", "public 0", [answer([[A, "8.8.8.8", 0]]), nothing]],
  ])("%s", (_, verdict, bodies) => expect(judge(...bodies)).toBe(verdict));
});

describe("an answer that cannot be used is a fault, never a verdict", () => {
  test.each<[string, string, string]>([
    ["no JSON", "malformed", "<html>"],
    ["nothing", "malformed", ""],
    ["an array", "malformed", "[]"],
    ["null", "malformed", "null"],
    ["without a status", "malformed", '{"Answer":[]}'],
    ["with records of another form", "malformed", '{"Status":0,"Answer":[{"type":1,"data":"8.8.8.8"}]}'],
    [
      "with an address that is none",
      "malformed",
      answer([
        [A, "8.8.8.8"],
        [A, "hooks.example.com"],
      ]),
    ],
    ["with an address in a spelling of C", "malformed", answer([[A, "010.8.8.8"]])],
    ["with a negative time to live", "malformed", answer([[A, "8.8.8.8", -1]])],
    ["to another question", "malformed", answer([[A, "8.8.8.8"]], { Question: [{ name: "other.example.com" }] })],
    ["cut short", "truncated", answer([[A, "8.8.8.8"]], { TC: true })],
    ["FORMERR", "refused", answer([], { Status: 1 })],
    ["NOTIMP", "refused", answer([], { Status: 4 })],
    ["REFUSED", "refused", answer([], { Status: 5 })],
  ])("%s", (_, fault, body) => {
    expect(judge(body, nothing)).toBe(fault);
    expect(judge(answer([[A, "8.8.8.8"]]), body)).toBe(fault);
  });
});

test("whatever is answered, a host is public only with an address, and never with a private one", () => {
  const record = fc.tuple(
    fc.constantFrom(A, AAAA, CNAME),
    fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom("10.0.0.1", "::1", "x.")),
  );
  const body = fc.oneof(
    fc.array(record, { maxLength: 4 }).map((records) => answer(records)),
    fc.json(),
    fc.string(),
  );
  fc.assert(
    fc.property(body, body, (a, b) => {
      const verdict = judge(a, b);
      if (!verdict.startsWith("public")) return;
      expect(`${a}${b}`).not.toMatch(/"type":(1|28),"TTL":300,"data":"(10\.0\.0\.1|::1)"/);
      expect(`${a}${b}`).toMatch(/"type":(1|28),/);
    }),
    { seed: 1, numRuns: 3_000 },
  );
});
