import { assert, array, boolean, integer, property, record } from "fast-check";
import { expect, test } from "vitest";
import {
  chooseReplays,
  faultPauseMs,
  MAX_OPEN,
  roomFor,
  stepPauseMs,
  statusesOf,
  type Walked,
} from "../../../src/core/replay.ts";

const walked = (eventId: string, replayNo = 0, isMeant = true): Walked => ({ eventId, replayNo, isMeant });

test("unless it is said otherwise what died and what was refused is replayed", () => {
  expect(statusesOf({ status: null })).toEqual(["dead_letter", "failed"]);
  expect(statusesOf({ status: "expired" })).toEqual(["expired"]);
});

test("no more than the most are ever open, and nothing is added while more than half of them are", () => {
  for (let open = 0; open <= MAX_OPEN; open++) {
    expect(open + roomFor(open)).toBeLessThanOrEqual(MAX_OPEN);
    expect(roomFor(open) > 0).toBe(open <= MAX_OPEN / 2);
  }
  expect(roomFor(MAX_OPEN + 1)).toBe(0);
});

test("who waits looks again ever later, but at least twice a minute", () => {
  expect([0, 1, 2, 7, 1_000].map(stepPauseMs)).toEqual([250, 500, 1_000, 30_000, 30_000]);
  expect([1, 2, 1_000].map(faultPauseMs)).toEqual([2_000, 4_000, 60_000]);
});

test("an event is replayed once, from its newest, and all that were meant are marked", () => {
  const rows = [walked("a"), walked("a", 2), walked("a", 3, false), walked("b", 1)];
  expect(chooseReplays(rows, 10, false)).toEqual({
    chosen: [
      { eventId: "a", replayNo: 2, replayNos: [0, 2] },
      { eventId: "b", replayNo: 1, replayNos: [1] },
    ],
    lookedAt: 4,
    found: 3,
    afterEventId: null,
  });
});

test("what has no room is left for the next step, and what is not meant needs none", () => {
  const rows = [walked("a", 0, false), walked("b"), walked("c", 0, false), walked("d"), walked("e", 0, false)];
  expect(chooseReplays(rows, 1, false)).toMatchObject({ chosen: [{ eventId: "b" }], lookedAt: 3, afterEventId: "c" });
});

test("an event that may have been cut off waits for the next step, unless it is all there is", () => {
  expect(chooseReplays([walked("a"), walked("b")], 9, true)).toMatchObject({ found: 1, afterEventId: "a" });
  expect(chooseReplays([walked("a"), walked("a", 1)], 9, true)).toMatchObject({ found: 2, afterEventId: "a" });
});

test("a walk without a row is at its end", () => {
  expect(chooseReplays([], 9, false)).toEqual({ chosen: [], lookedAt: 0, found: 0, afterEventId: null });
});

test("step by step every event that is meant is taken once, in order, whatever the room and the size of a page", () => {
  const rows = array(
    record({ event: integer({ min: 0, max: 40 }), no: integer({ min: 0, max: 3 }), isMeant: boolean() }),
  );
  assert(
    property(rows, integer({ min: 1, max: 7 }), integer({ min: 5, max: 20 }), (given, room, page) => {
      const unique = [...new Map(given.map((row) => [`${row.event}/${row.no}`, row])).values()];
      const all = unique
        .map(({ event, no, isMeant }) => walked(String(event).padStart(2, "0"), no, isMeant))
        .toSorted((a, b) => (a.eventId < b.eventId ? -1 : a.eventId > b.eventId ? 1 : a.replayNo - b.replayNo));
      const taken: string[] = [];
      let lookedAt = 0;
      let found = 0;
      for (let after: string | null = ""; after !== null;) {
        const from: string = after;
        const rest = all.filter(({ eventId }) => eventId > from);
        const choice = chooseReplays(rest.slice(0, page), room, rest.length >= page);
        expect(choice.chosen.length).toBeLessThanOrEqual(room);
        taken.push(...choice.chosen.map(({ eventId }) => eventId));
        lookedAt += choice.lookedAt;
        found += choice.found;
        after = choice.afterEventId;
      }
      const meant = all.filter(({ isMeant }) => isMeant);
      expect(taken).toEqual([...new Set(meant.map(({ eventId }) => eventId))]);
      expect([lookedAt, found]).toEqual([all.length, meant.length]);
    }),
    { seed: 1, numRuns: 500 },
  );
});
