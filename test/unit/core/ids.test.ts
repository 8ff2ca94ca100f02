import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  attemptId,
  createEventIds,
  createId,
  deliveryId,
  eventIdTimeMs,
  firstEventIdAt,
  isEventId,
  isId,
  parseDeliveryId,
  webhookId,
} from "../../../src/core/ids.ts";

const seed = { seed: 1 };
const random = fc.uint8Array({ minLength: 10, maxLength: 10 });
const timeMs = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const eventId = fc.tuple(timeMs, random).map(([ms, bytes]) => createEventIds(ms, bytes, 1)[0] as string);
const endpointId = random.map((bytes) => createId("ep", bytes));
const ref = fc.record({ eventId, endpointId, replayNo: fc.oneof(fc.nat(40), fc.nat(2 ** 30 - 1)) });
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

describe("ids", () => {
  test("an id is its prefix and 16 characters that depend on every random bit", () => {
    expect(createId("ep", new Uint8Array(10))).toBe("ep_0000000000000000");
    expect(createId("ten", new Uint8Array(10).fill(255))).toBe("ten_zzzzzzzzzzzzzzzz");
    expect(createId("src", Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 1))).toBe("src_0000000000000001");
    expect(createId("key", Uint8Array.of(0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0))).toBe("key_1000000000000000");
  });

  test("too little randomness is a programming error, not a guessable id", () => {
    expect(() => createId("sec", new Uint8Array(9))).toThrow(RangeError);
    expect(() => createEventIds(0, new Uint8Array(), 1)).toThrow(RangeError);
  });

  test("an id is of its own prefix only", () => {
    fc.assert(
      fc.property(random, (bytes) => {
        const id = createId("sub", bytes);
        expect(id).toMatch(/^sub_[0-9a-hjkmnp-tv-z]{16}$/);
        expect(isId("sub", id)).toBe(true);
        expect(isId("src", id)).toBe(false);
        expect(isId("sub", id.slice(0, -1))).toBe(false);
        expect(isId("sub", `${id}0`)).toBe(false);
        expect(isId("sub", `${id}\n`)).toBe(false);
        expect(isId("sub", id.toUpperCase())).toBe(false);
      }),
      seed,
    );
    for (const letter of "ilouILOU.-_ ") expect(isId("ep", `ep_00000000000000${letter}0`)).toBe(false);
  });
});

describe("event ids", () => {
  test("the ids of a batch are distinct and sort in array order, whatever the random bytes", () => {
    fc.assert(
      fc.property(timeMs, random, fc.integer({ min: 0, max: 600 }), (ms, bytes, count) => {
        const ids = createEventIds(ms, bytes, count);
        expect(ids).toHaveLength(count);
        expect(new Set(ids).size).toBe(count);
        expect(ids.toSorted()).toEqual(ids);
        for (const id of ids) {
          expect(isEventId(id)).toBe(true);
          expect(eventIdTimeMs(id)).toBe(ms);
        }
      }),
      { ...seed, numRuns: 30 },
    );
  });

  test("counting up from the largest random value does not reach the time", () => {
    const ids = createEventIds(7, new Uint8Array(10).fill(255), 500);
    expect(ids.toSorted()).toEqual(ids);
    expect(eventIdTimeMs(ids[499] as string)).toBe(7);
  });

  test("the layout is a ULID's: ten characters of time, sixteen of randomness", () => {
    // 01ARZ3NDEKTSV4RRFFQ69G5FAV is the example of the ULID specification.
    expect(eventIdTimeMs("evt_01arz3ndektsv4rrffq69g5fav")).toBe(1469922850259);
    const random80 = Uint8Array.of(0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0x1f);
    expect(createEventIds(1469922850259, random80, 2)).toEqual([
      "evt_01arz3ndekfw0000000000000z",
      "evt_01arz3ndekfw00000000000010",
    ]);
  });

  test("later milliseconds sort later", () => {
    fc.assert(
      fc.property(timeMs, timeMs, random, random, (a, b, randomA, randomB) => {
        fc.pre(a < b);
        expect((createEventIds(a, randomA, 1)[0] as string) < (createEventIds(b, randomB, 1)[0] as string)).toBe(true);
      }),
      seed,
    );
  });

  test("the first id of a millisecond is not after any of that millisecond and is after all before it", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 48 - 1 }), random, (ms, bytes) => {
        const first = firstEventIdAt(ms);
        expect(isEventId(first)).toBe(true);
        expect(first <= (createEventIds(ms, bytes, 1)[0] as string)).toBe(true);
        expect(first > (createEventIds(ms - 1, bytes, 1)[0] as string)).toBe(true);
      }),
      seed,
    );
  });

  test("times outside 48 bits bound the range instead of breaking it", () => {
    expect(firstEventIdAt(-5)).toBe(firstEventIdAt(0));
    expect(firstEventIdAt(2 ** 60)).toBe(firstEventIdAt(2 ** 48 - 1));
    expect(firstEventIdAt(12.9)).toBe(firstEventIdAt(12));
  });

  test("what no event can be called is no event id", () => {
    const good = "evt_01arz3ndektsv4rrffq69g5fav";
    expect(isEventId(good)).toBe(true);
    for (const bad of [
      "",
      "evt_",
      good.slice(4),
      `${good}0`,
      good.slice(0, -1),
      good.toUpperCase(),
      ` ${good}`,
      `${good}\n`,
    ]) {
      expect(isEventId(bad)).toBe(false);
    }
    expect(isEventId(good.replace("evt_0", "evt_8"))).toBe(false);
    expect(isEventId(good.replace("evt", "dlv"))).toBe(false);
  });
});

describe("delivery ids", () => {
  test("a delivery id reads back as the same delivery", () => {
    fc.assert(
      fc.property(ref, (delivery) => {
        const id = deliveryId(delivery);
        expect(id).toMatch(/^dlv_[0-9a-z]{42,48}$/);
        expect(parseDeliveryId(id)).toEqual({ ok: true, value: delivery });
      }),
      seed,
    );
  });

  test("whatever reads back is the one spelling of its delivery", () => {
    const nearlyDeliveryId = fc
      .tuple(
        ref,
        fc.nat(60),
        fc.constantFrom(...alphabet, "i", "l", "o", "u", "A", "."),
        fc.constantFrom("", "0", "10"),
      )
      .map(([delivery, at, letter, tail]) => {
        const id = deliveryId(delivery);
        return id.slice(0, at) + letter + id.slice(at + 1) + tail;
      });
    fc.assert(
      fc.property(nearlyDeliveryId, (text) => {
        const parsed = parseDeliveryId(text);
        if (parsed.ok) expect(deliveryId(parsed.value)).toBe(text);
      }),
      { ...seed, numRuns: 1000 },
    );
  });

  test("the first delivery has no replay number, replays have one without leading zeros", () => {
    const delivery = { eventId: "evt_01arz3ndektsv4rrffq69g5fav", endpointId: "ep_0123456789abcdef" };
    const first = "dlv_01arz3ndektsv4rrffq69g5fav0123456789abcdef";
    expect(deliveryId({ ...delivery, replayNo: 0 })).toBe(first);
    expect(deliveryId({ ...delivery, replayNo: 1 })).toBe(`${first}1`);
    expect(deliveryId({ ...delivery, replayNo: 32 })).toBe(`${first}10`);
    expect(deliveryId({ ...delivery, replayNo: 31 })).toBe(`${first}z`);
    for (const tail of ["0", "01", "zzzzzzz", "i", "."]) {
      expect(parseDeliveryId(first + tail)).toEqual({ ok: false, error: "malformed_id" });
    }
    expect(parseDeliveryId(first.slice(0, -1)).ok).toBe(false);
    expect(parseDeliveryId("").ok).toBe(false);
  });

  test("the webhook id is the same for every replay and differs between endpoints and events", () => {
    fc.assert(
      fc.property(ref, ref, (a, b) => {
        expect(webhookId(a)).toBe(webhookId({ eventId: a.eventId, endpointId: a.endpointId }));
        expect(webhookId(a) === webhookId(b)).toBe(a.eventId === b.eventId && a.endpointId === b.endpointId);
        expect(webhookId(a)).toMatch(/^msg_[0-9a-z]{42}$/);
      }),
      seed,
    );
  });

  test("no id holds a dot, and an attempt is its delivery and number", () => {
    fc.assert(
      fc.property(ref, (delivery) => {
        expect(deliveryId(delivery) + webhookId(delivery)).not.toContain(".");
      }),
      seed,
    );
    expect(attemptId("dlv_x", 3)).toBe("dlv_x:3");
  });
});
