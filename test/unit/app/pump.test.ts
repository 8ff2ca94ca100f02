import { describe, expect, test } from "vitest";
import { createLaneState, type LaneDeps } from "../../../src/app/lane/lane-state.ts";
import { laneScene } from "./support/lane.ts";
import { T0 } from "./support/report.ts";

const SECOND_MS = 1_000;
const names = (count: number, prefix = "e") => Array.from({ length: count }, (_, n) => `${prefix}${n}`);
const padded = (n: number) => String(n).padStart(4, "0");

/** A lane with one row in each of many keys. */
function manyKeys(count: number, settings: Parameters<typeof laneScene>[0], over?: Partial<LaneDeps>) {
  const scene = laneScene({ orderingMode: "keyed", ...settings }, over);
  for (let n = 0; n < count; n++) scene.add(`k${padded(n)}`, [`e${padded(n)}`]);
  return scene;
}

describe("order", () => {
  test("a strict lane makes one request at a time, in order, and its failing head holds up the rest", async () => {
    const scene = laneScene();
    scene.add("", names(20));
    scene.answer = ({ name, attempt }) => ({ status: name === "e3" && attempt < 3 ? 503 : 200, tookMs: 10 });
    await scene.wake();
    await scene.runFor(4 * SECOND_MS);
    expect(scene.names()).toEqual(["e0", "e1", "e2", "e3"]);
    await scene.runFor(10 * SECOND_MS);
    expect(scene.names()).toEqual(["e0", "e1", "e2", "e3", "e3", ...names(20).slice(3)]);
    expect(scene.mostInFlight.total).toBe(1);
    // Its retries came when they were due, and not before.
    expect(scene.sent[4]!.at - scene.sent[3]!.at).toBe(5_010);
  });

  test("keys run side by side, each one at a time and in order; one that hangs holds up no other", async () => {
    const scene = laneScene({ orderingMode: "keyed", concurrencyCap: 5 });
    for (const key of ["a", "b", "c"]) scene.add(key, names(40, key));
    scene.answer = ({ name }) => ({ status: 200, tookMs: name === "a0" ? 60_000 : 7 });
    await scene.wake();
    await scene.runFor(SECOND_MS);
    for (const key of ["b", "c"]) {
      expect(scene.names().filter((name) => name.startsWith(key))).toEqual(names(40, key));
    }
    expect(scene.names().filter((name) => name.startsWith("a"))).toEqual(["a0"]);
    expect(scene.mostInFlight).toEqual({ total: 3, ofKey: 1 });
  });

  test("a dead head lets the next go, or stops its key and no other where the endpoint asks for that", async () => {
    for (const blockOnDead of [false, true]) {
      const scene = laneScene({ orderingMode: "keyed" });
      scene.blockOnDead = blockOnDead;
      scene.add("a", names(3, "a"));
      scene.add("b", names(3, "b"));
      scene.answer = ({ name }) => ({ status: name === "a1" ? 400 : 200, tookMs: 1 });
      await scene.wake();
      await scene.runFor(SECOND_MS);
      expect(scene.names().filter((name) => name.startsWith("a"))).toEqual(names(blockOnDead ? 2 : 3, "a"));
      expect(scene.names().filter((name) => name.startsWith("b"))).toEqual(names(3, "b"));
    }
  });
});

describe("what it costs", () => {
  test.each([
    // 16, then 64 at a time.
    ["strict", 16 + 3 * 64, 4],
    ["keyed", 64, 4],
  ] as const)(
    "while all goes well a lane is read once for many deliveries of a key: %s",
    async (mode, count, loads) => {
      const scene = laneScene({ orderingMode: mode });
      scene.add("", names(count));
      await scene.wake();
      await scene.runFor(SECOND_MS);
      expect(scene.names()).toEqual(names(count));
      // The last finds it empty.
      expect(scene.loads).toHaveLength(loads + 1);
    },
  );

  test("a strict lane that fails is read in small parts again", async () => {
    const scene = laneScene();
    const sizes: number[] = [];
    const load = scene.deps.loadLane;
    scene.deps.loadLane = (...args) => (sizes.push(args[4]), load(...args));
    scene.add("", names(100));
    scene.answer = ({ name, attempt }) => ({ status: name === "e20" && attempt === 1 ? 503 : 200, tookMs: 1 });
    await scene.wake();
    await scene.runFor(3_600 * SECOND_MS);
    expect(new Set(scene.names()).size).toBe(100);
    const failedAt = sizes.indexOf(64) + 1;
    expect(sizes.slice(0, failedAt)).toEqual([16, 64]);
    expect(sizes[failedAt]).toBe(16);
  });

  test("nothing is attempted by rows that were read more than ten seconds before its turn came", async () => {
    const scene = laneScene();
    const ages = agesOfRows(scene, 3 * SECOND_MS);
    scene.add("", names(30));
    await scene.wake();
    await scene.runFor(100 * SECOND_MS);
    expect(scene.names()).toEqual(names(30));
    // One was made ready before, while the request before it was out.
    expect(Math.max(...ages)).toBeLessThanOrEqual(13 * SECOND_MS);
    expect(Math.max(...ages)).toBeGreaterThan(5 * SECOND_MS);
  });

  test("and by none that waited longer than that for room, or for the rate", async () => {
    for (const limits of [{ concurrencyCap: 1 }, { ratePerSecond: 1 }]) {
      const scene = manyKeys(40, limits);
      const ages = agesOfRows(scene, SECOND_MS);
      await scene.wake();
      await scene.runFor(100 * SECOND_MS);
      expect(scene.sent).toHaveLength(40);
      // The turn of one that was begun by then may come a little later.
      expect(Math.max(...ages)).toBeLessThanOrEqual(12 * SECOND_MS);
      expect(scene.loads.length).toBeLessThanOrEqual(10);
    }
  });

  test("heads that found no room go next without being read again", async () => {
    const scene = manyKeys(60, { concurrencyCap: 4 });
    scene.answer = ({ name }) => ({ status: 200, tookMs: 5 + ((Number(name.slice(1)) * 7) % 20) });
    await scene.wake();
    await scene.runFor(SECOND_MS);
    expect(scene.sent).toHaveLength(60);
    expect(scene.mostInFlight.total).toBe(4);
    expect(scene.loads.length).toBeLessThanOrEqual(6);
  });

  test("one claim that is lost is enough: the lane is read again before another is tried", async () => {
    const scene = manyKeys(20, { concurrencyCap: 1 });
    let claims = 0;
    const claim = scene.deps.claimHead;
    scene.deps.claimHead = (...args) => {
      claims++;
      return claim(...args);
    };
    scene.answer = ({ name }) => {
      // Meanwhile another object delivers all the rest.
      if (name === "e0000") for (let n = 1; n < 20; n++) scene.row(`e${padded(n)}`).status = "succeeded";
      return { status: 200, tookMs: 10 };
    };
    await scene.wake();
    await scene.runFor(SECOND_MS);
    expect(scene.names()).toEqual(["e0000"]);
    expect(claims).toBe(2);
  });

  test("an idle lane asks for no pump at all", async () => {
    const scene = laneScene();
    expect(await scene.wake()).toBeNull();
    await scene.runFor(3_600 * SECOND_MS);
    expect(scene.pumps()).toBe(1);
  });

  test("a lane that is full pumps when a request ends, though a retry has become due meanwhile", async () => {
    const scene = laneScene({ orderingMode: "keyed", concurrencyCap: 2 });
    scene.add("a", ["a0"]);
    scene.answer = ({ name, attempt }) =>
      name === "a0" && attempt === 1 ? { status: 503, tookMs: 0 } : { status: 200, tookMs: 20_000 };
    await scene.wake();
    await scene.runFor(SECOND_MS);
    scene.add("b", ["b0"]);
    scene.add("c", ["c0"]);
    await scene.wake();
    const before = scene.pumps();
    // a0 is due after 5 s; b0 and c0 fill the cap until the 21st second. Between two keys there is no order.
    await scene.runFor(19 * SECOND_MS);
    expect(scene.names().toSorted()).toEqual(["a0", "b0", "c0"]);
    expect(scene.pumps() - before).toBe(0);
    await scene.runFor(2 * SECOND_MS);
    expect(scene.names()).toHaveLength(4);
    expect(scene.names().at(-1)).toBe("a0");
  });

  test("waiting for its rate a lane pumps about once a request, and reads no more than the heads it starts", async () => {
    const scene = manyKeys(60, { ratePerSecond: 10 });
    await scene.wake();
    await scene.runFor(8 * SECOND_MS);
    expect(scene.sent).toHaveLength(60);
    expect(scene.pumps()).toBeLessThanOrEqual(3 * 60);
    expect(scene.loads.length).toBeLessThanOrEqual(10);
  });

  test("walks over a lane of many keys of which none is due are apart, the more so the longer they are", async () => {
    const scene = laneScene({ orderingMode: "keyed" });
    for (let n = 0; n < 640; n++) scene.add(`k${padded(n)}`, [`e${n}`], { nextAttemptAt: T0 + 1_000 + n });
    await scene.wake();
    for (let n = 0; n < 50; n++) await scene.wake();
    expect(scene.loads).toHaveLength(11);
    const before = scene.pumps();
    await scene.runFor(900);
    expect(scene.loads.length).toBeLessThanOrEqual(22);
    expect(scene.pumps() - before).toBeLessThanOrEqual(5);
    await scene.runFor(20 * SECOND_MS);
    expect(new Set(scene.names()).size).toBe(640);
  });

  test("what becomes due in the pause between two walks waits for its end, without a pump", async () => {
    const scene = laneScene({ orderingMode: "keyed" });
    for (let n = 0; n < 640; n++) {
      scene.add(`k${padded(n)}`, [`e${n}`], { nextAttemptAt: T0 + (n === 0 ? 1_000 : 1_100) });
    }
    await scene.wake();
    await scene.runFor(1_050);
    expect(scene.names()).toEqual(["e0"]);
    const before = scene.pumps();
    // Eleven parts, so 220 ms.
    await scene.runFor(165);
    expect(scene.names()).toEqual(["e0"]);
    expect(scene.pumps() - before).toBeLessThanOrEqual(1);
    await scene.runFor(200);
    expect(new Set(scene.names()).size).toBe(640);
  });
});

describe("limits", () => {
  test("never more requests under way than the cap, counting those that others have in flight", async () => {
    const scene = manyKeys(30, { concurrencyCap: 3 });
    const lease = { status: "processing", token: "another", attemptCount: 1, lockedUntil: T0 + 45_000 };
    Object.assign(scene.row("e0007"), lease);
    scene.answer = () => ({ status: 200, tookMs: 50 });
    await scene.wake();
    await scene.runFor(2 * SECOND_MS);
    expect(scene.mostInFlight.total).toBe(2);
    expect(scene.sent).toHaveLength(29);
  });

  test("room that others took is found again soon after they ended, though nobody says so", async () => {
    const scene = manyKeys(10, { concurrencyCap: 1 });
    const lease = { status: "processing", token: "another", attemptCount: 1, lockedUntil: T0 + 45_000 };
    Object.assign(scene.row("e0000"), lease);
    await scene.wake();
    await scene.runFor(3 * SECOND_MS);
    expect(scene.sent).toEqual([]);
    scene.row("e0000").status = "succeeded";
    await scene.runFor(2 * SECOND_MS);
    expect(scene.sent).toHaveLength(9);
    expect(scene.loads.length).toBeLessThanOrEqual(8);
  });

  test("a lane without a cap of its own has sixteen requests under way at most", async () => {
    const scene = manyKeys(200, {});
    scene.answer = () => ({ status: 200, tookMs: 50 });
    await scene.wake();
    await scene.runFor(2 * SECOND_MS);
    expect(scene.mostInFlight.total).toBe(16);
    expect(new Set(scene.names()).size).toBe(200);
  });

  test.each(["keyed", "strict"] as const)(
    "a %s lane never starts more in a second than its rate, and claims nothing before its turn",
    async (orderingMode) => {
      const scene = laneScene({ orderingMode, ratePerSecond: 10 });
      if (orderingMode === "strict") scene.add("", names(100));
      else for (let n = 0; n < 100; n++) scene.add(`k${padded(n)}`, [`e${n}`]);
      scene.answer = ({ at }) => ({ status: 200, tookMs: 1 + (at % 37) });
      await scene.wake();
      await scene.runFor(12 * SECOND_MS);
      const times = scene.sent.map(({ at }) => at);
      expect(times).toHaveLength(100);
      expect(scene.sent.map(({ name }) => scene.row(name).lastAttemptAt)).toEqual(times);
      for (const at of times) expect(times.filter((t) => t >= at && t < at + 1_000).length).toBeLessThanOrEqual(10);
    },
  );

  test("where some requests wait longer for the ledger than others, the rate still holds for the requests", async () => {
    const scene = manyKeys(40, { ratePerSecond: 10 });
    const claim = scene.deps.claimHead;
    scene.deps.claimHead = async (...args) => {
      await scene.later(scene.clock.now < T0 + 700 ? 300 : 0);
      return claim(...args);
    };
    await scene.wake();
    await scene.runFor(8 * SECOND_MS);
    const times = scene.sent.map(({ at }) => at);
    expect(times).toHaveLength(40);
    for (const at of times) expect(times.filter((t) => t >= at && t < at + 1_000).length).toBeLessThanOrEqual(10);
  });

  test("an object that was just made lets nothing start in its first second where there is a rate", async () => {
    const scene = laneScene({ ratePerSecond: 5 });
    scene.state.pace = createLaneState(scene.state, T0).pace;
    scene.add("", names(3));
    await scene.wake();
    await scene.runFor(SECOND_MS);
    expect(scene.sent).toEqual([]);
    await scene.runFor(SECOND_MS);
    expect(scene.sent).toHaveLength(3);
  });
});

describe("a lane with more keys than one load brings", () => {
  test.each([64, 65, 128, 200])("all of %i keys are reached", async (count) => {
    const scene = manyKeys(count, { concurrencyCap: 8 });
    scene.answer = () => ({ status: 200, tookMs: 5 });
    await scene.wake();
    await scene.runFor(5 * SECOND_MS);
    expect(new Set(scene.names()).size).toBe(count);
    expect(scene.sent).toHaveLength(count);
  });

  test.each([64, 100, 128, 200])("after a pause all of %i keys go on at once", async (count) => {
    const scene = manyKeys(count, { pausedAt: T0 });
    scene.answer = () => ({ status: 200, tookMs: 5 });
    await scene.wake();
    await scene.runFor(70 * SECOND_MS);
    expect(scene.sent).toEqual([]);
    scene.settings.pausedAt = null;
    await scene.wake();
    await scene.runFor(2 * SECOND_MS);
    expect(new Set(scene.names()).size).toBe(count);
  });
});

describe("an operator's word", () => {
  test.each(["pausedAt", "disabledAt"] as const)(
    "nothing starts while %s is set; afterwards all go on in order",
    async (name) => {
      const scene = laneScene({ [name]: T0 });
      scene.add("", names(5));
      const wakeAt = await scene.wake();
      // Somebody must look whether a delivery has become too old meanwhile.
      expect(wakeAt).toBeLessThanOrEqual(T0 + 60 * SECOND_MS);
      await scene.runFor(300 * SECOND_MS);
      expect(scene.sent).toEqual([]);
      scene.settings[name] = null;
      await scene.wake();
      await scene.runFor(SECOND_MS);
      expect(scene.names()).toEqual(names(5));
    },
  );

  test("a pause stops a lane between two requests, whatever it had read before", async () => {
    const scene = laneScene();
    scene.add("", names(10));
    scene.answer = ({ name }) => {
      if (name === "e2") scene.settings.pausedAt = scene.clock.now;
      return { status: 200, tookMs: 10 };
    };
    await scene.wake();
    await scene.runFor(10 * SECOND_MS);
    expect(scene.names()).toEqual(names(3));
    expect(scene.row("e2").status).toBe("succeeded");
  });

  test("a lane that was moved to another object starts nothing, wakes that one, and leaves it at that", async () => {
    const scene = laneScene({ laneGeneration: 2 });
    scene.add("", names(3));
    expect(await scene.wake()).toBeNull();
    await scene.settle();
    expect(scene.woken).toEqual([2]);
    expect(scene.sent).toEqual([]);
  });

  test("an endpoint that queues deliver for, or that is gone, asks nothing of a lane", async () => {
    const routed = laneScene({ route: "queue" });
    routed.add("", names(3));
    expect(await routed.wake()).toBeNull();
    const gone = laneScene({}, { loadLane: async () => ({ settings: null, lanes: [], hasMore: false, region: null }) });
    expect(await gone.wake()).toBeNull();
    expect([...routed.sent, ...gone.sent, ...gone.woken]).toEqual([]);
  });
});

describe("wakes", () => {
  test("one at a time reads the lane, however many wakes come at once", async () => {
    let reading = 0;
    let most = 0;
    const scene = laneScene();
    const load = scene.deps.loadLane;
    scene.deps.loadLane = async (...args) => {
      most = Math.max(most, ++reading);
      await new Promise((resolve) => setImmediate(resolve));
      reading--;
      return load(...args);
    };
    scene.add("", names(3));
    await Promise.all(Array.from({ length: 20 }, () => scene.wake()));
    await scene.runFor(SECOND_MS);
    expect(most).toBe(1);
    expect(scene.names()).toEqual(names(3));
  });

  test("one that comes at any moment of a pump makes the lane be read once more", async () => {
    for (let microtasks = 0; microtasks < 40; microtasks++) {
      const scene = laneScene();
      const first = scene.wake();
      for (let n = 0; n < microtasks; n++) await Promise.resolve();
      scene.add("", ["late"]);
      await scene.wake();
      await first;
      await scene.runFor(10);
      expect(scene.names(), `after ${microtasks} microtasks`).toEqual(["late"]);
    }
  });

  test("a finished request pumps again and finds what came meanwhile, though its wake found the lane full", async () => {
    const scene = laneScene();
    scene.add("", ["e0"]);
    scene.answer = () => ({ status: 200, tookMs: 100 });
    await scene.wake();
    await scene.settle();
    scene.add("", ["e1"]);
    await scene.wake();
    expect(scene.loads).toHaveLength(1);
    await scene.runFor(SECOND_MS);
    expect(scene.names()).toEqual(["e0", "e1"]);
  });

  test("while requests are out a lane is looked at again when their leases end, whatever becomes of them", async () => {
    const scene = laneScene();
    scene.add("", ["e0"]);
    scene.answer = () => ({ status: 200, tookMs: 100_000 });
    await scene.wake();
    await scene.settle();
    expect(await scene.wake()).toBe(T0 + 45 * SECOND_MS);
  });
});

describe("faults of ours", () => {
  test("a ledger that refuses a load is asked again soon, and the pump does not throw", async () => {
    let refusals = 3;
    const scene = laneScene();
    const load = scene.deps.loadLane;
    scene.deps.loadLane = async (...args) => (refusals-- > 0 ? Promise.reject(new Error("D1 is away")) : load(...args));
    scene.add("", names(2));
    expect(await scene.wake()).toBe(T0 + 2_000);
    await scene.runFor(7 * SECOND_MS);
    expect(scene.faults).toEqual(Array.from({ length: 3 }, () => "lane: Error: D1 is away"));
    expect(scene.names()).toEqual(names(2));
  });

  test.each<[string, Partial<LaneDeps>]>([
    ["its claims", { claimHead: () => Promise.reject(new Error("away")) }],
    ["its payloads", { getPayload: () => Promise.reject(new Error("away")) }],
  ])("a store that refuses %s is asked after 1, 5, 15, then 60 s, and other keys do not wait", async (_what, over) => {
    const asked: number[] = [];
    const scene = laneScene({ orderingMode: "keyed" });
    scene.add("bad", ["bad0"]);
    const real = { claimHead: scene.deps.claimHead, getPayload: scene.deps.getPayload };
    if (over.claimHead) {
      scene.deps.claimHead = (...args) => {
        if (args[0].eventId !== "evt_bad0") return real.claimHead(...args);
        asked.push(scene.clock.now);
        return over.claimHead!(...args);
      };
    } else {
      scene.deps.getPayload = (ref, size) => {
        if (ref !== "r#bad0") return real.getPayload(ref, size);
        asked.push(scene.clock.now);
        return over.getPayload!(ref, size);
      };
    }
    scene.add("good", names(20, "good"));
    await scene.wake();
    await scene.runFor(90 * SECOND_MS);
    expect([...new Set(asked)].map((at) => at - T0)).toEqual([0, 1_000, 6_000, 21_000, 81_000]);
    expect(scene.names()).toEqual(names(20, "good"));
    // Nothing was spent.
    expect(scene.row("bad0")).toMatchObject({ status: "pending", attemptCount: 0 });
  });

  test("a request that outlives its lease is not taken for abandoned by the object that waits for it", async () => {
    const scene = laneScene({ orderingMode: "keyed" });
    scene.add("a", ["a0"]);
    scene.answer = ({ name }) => ({ status: 200, tookMs: name === "a0" ? 50_000 : 1 });
    await scene.wake();
    await scene.runFor(46 * SECOND_MS);
    scene.add("b", ["b0"]);
    await scene.wake();
    await scene.runFor(10 * SECOND_MS);
    expect(scene.sent).toMatchObject([
      { name: "a0", attempt: 1 },
      { name: "b0", attempt: 1 },
    ]);
    expect(scene.row("a0")).toMatchObject({ status: "succeeded", attemptCount: 1 });
  });

  test("a report that the ledger refuses goes to the queue, and the request is not made again while its lease runs", async () => {
    const refuse = () => Promise.reject(new Error("away"));
    const scene = laneScene({}, { closeAttempts: refuse, closeAndClaim: refuse });
    scene.add("", names(2));
    await scene.wake();
    await scene.runFor(40 * SECOND_MS);
    expect(scene.names()).toEqual(["e0"]);
    expect(scene.reports).toMatchObject([{ eventId: "evt_e0", wire: { status: 200 }, lane: { generation: 1 } }]);
  });

  test("a lease is taken back ten minutes after its end though reports are still on their way", async () => {
    const scene = laneScene({}, { reportsUntil: async () => Infinity });
    scene.add("", names(1));
    Object.assign(scene.row("e0"), { status: "processing", token: "dead", attemptCount: 1, lockedUntil: T0 });
    await scene.wake();
    await scene.runFor(599 * SECOND_MS);
    expect(scene.sent).toEqual([]);
    await scene.runFor(10 * SECOND_MS);
    expect(scene.sent).toMatchObject([{ name: "e0", attempt: 2 }]);
  });

  test("a lease that ended is taken back, unless a report may still be on its way to the ledger", async () => {
    for (const reportsUntil of [0, T0 + 20_000]) {
      const scene = laneScene({}, { reportsUntil: async () => reportsUntil });
      scene.add("", names(2));
      const lease = { status: "processing" as const, token: "dead", attemptCount: 1, lockedUntil: T0 + 3_000 };
      Object.assign(scene.row("e0"), lease);
      await scene.wake();
      await scene.runFor(60 * SECOND_MS);
      expect(scene.sent.map(({ name, attempt }) => [name, attempt])).toEqual([
        ["e0", 2],
        ["e1", 1],
      ]);
      const takenBackAt = Math.max(T0 + 3_000, reportsUntil);
      expect(scene.sent[0]!.at).toBeGreaterThanOrEqual(takenBackAt);
      expect(scene.sent[0]!.at).toBeLessThanOrEqual(takenBackAt + 6_000);
    }
  });
});

test("what was taken for abandoned is not attempted again while a report of it may be on its way, but not for ever", async () => {
  for (const [reportsUntil, sentAt] of [
    [T0, T0],
    [T0 + 20_000, T0 + 20_000],
    [Infinity, T0 + 599_000],
  ] as const) {
    const scene = laneScene({}, { reportsUntil: async () => reportsUntil });
    scene.add("", names(1), { attemptCount: 1, relayFaultCount: 1, lastAttemptAt: T0 - 1_000 });
    await scene.wake();
    await scene.runFor(700 * SECOND_MS);
    expect(scene.sent).toMatchObject([{ name: "e0", attempt: 2 }]);
    expect(scene.sent[0]!.at).toBeGreaterThanOrEqual(sentAt);
    expect(scene.sent[0]!.at).toBeLessThanOrEqual(sentAt + 60_000);
  }
});

describe("heads that have waited long enough", () => {
  test("one that is too old ends without a request and lets the next go", async () => {
    const scene = laneScene();
    scene.add("", ["old"], { expiresAt: T0 - 1 });
    scene.add("", ["young"]);
    await scene.wake();
    await scene.runFor(SECOND_MS);
    expect(scene.row("old")).toMatchObject({ status: "expired", finalOutcome: "expired" });
    expect(scene.names()).toEqual(["young"]);
  });

  test("one whose payload is gone ends without a request", async () => {
    const scene = laneScene(
      {},
      { getPayload: async (ref) => (ref === "r#gone" ? null : new TextEncoder().encode("{}")) },
    );
    scene.add("", ["gone", "there"]);
    await scene.wake();
    await scene.runFor(SECOND_MS);
    expect(scene.row("gone")).toMatchObject({ status: "failed", finalOutcome: "payload_missing" });
    expect(scene.names()).toEqual(["there"]);
  });

  test("a head that backs off for longer than it may be held ends in time, though nobody wakes the lane", async () => {
    const scene = laneScene({ maxHeadHoldSeconds: 30 });
    scene.add("", ["bad", "good"]);
    scene.row("bad").policy.delays_seconds = [300];
    scene.answer = ({ name }) => ({ status: name === "bad" ? 503 : 200, tookMs: 0 });
    await scene.wake();
    await scene.runFor(29 * SECOND_MS);
    expect(scene.names()).toEqual(["bad"]);
    await scene.runFor(2 * SECOND_MS);
    expect(scene.row("bad")).toMatchObject({ status: "dead_letter", finalOutcome: "held_too_long" });
    expect(scene.names()).toEqual(["bad", "good"]);
  });
});

/** Of each request, how long ago its lane had been read. All are answered after so long. */
function agesOfRows(scene: ReturnType<typeof laneScene>, tookMs: number): number[] {
  const ages: number[] = [];
  let readAt = 0;
  const load = scene.deps.loadLane;
  scene.deps.loadLane = (...args) => {
    readAt = scene.deps.now();
    return load(...args);
  };
  scene.answer = () => {
    ages.push(scene.deps.now() - readAt);
    return { status: 200, tookMs };
  };
  return ages;
}
