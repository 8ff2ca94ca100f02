import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkDestination, type DestinationOptions } from "../../../src/core/url-guard.ts";
import { SPELLINGS, anywhere, publicOnly } from "./support/url-spellings.ts";

function answer(text: string, options: DestinationOptions): string {
  const result = checkDestination(text, options);
  return result.ok ? result.value.url : result.error.reason;
}

describe("every spelling", () => {
  test.each(SPELLINGS)("%j where only public destinations are allowed: %s", (written, expected) => {
    expect(answer(written, publicOnly)).toBe(expected);
  });

  test.each(SPELLINGS)("%j where private ones are allowed too", (written, _, expected) => {
    expect(answer(written, anywhere)).toBe(expected);
  });

  test("what is kept is judged as what was written, so the check at the send says what the check at the write said", () => {
    for (const [written] of SPELLINGS) {
      for (const options of [publicOnly, anywhere]) {
        const kept = answer(written, options);
        if (kept.includes("://")) expect(answer(kept, options)).toBe(kept);
      }
      const kept = answer(written, anywhere);
      if (kept.includes("://")) expect(answer(kept, publicOnly)).toBe(answer(written, publicOnly));
    }
  });
});

/** Hosts are put together from what confuses parsers, so that many are nearly accepted. */
const piece = fc.constantFrom(
  ..."127 0 1 0x7f 0177 ① １ . 。 ｡ ． %2e : @ / \\ # ? [ ] :: ffff 64:ff9b localhost example com xn-- bücher ü - _ %00 \t \u00ad \u200d".split(
    " ",
  ),
);
const confusing = fc.array(piece, { minLength: 1, maxLength: 10 }).map((pieces) => `https://${pieces.join("")}/`);
const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.webUrl().map((url) => url.replace(/^http:/, "https:")),
  confusing,
  fc.string({ unit: "binary" }).map((host) => `https://${host}/`),
);

test("whatever the text, an accepted public URL has a name with a dot for a host, and its kept form is kept", () => {
  let accepted = 0;
  fc.assert(
    fc.property(anyText, (text) => {
      const result = checkDestination(text, publicOnly);
      if (!result.ok) return;
      accepted++;
      const { url } = result.value;
      expect(checkDestination(url, publicOnly)).toEqual(result);
      const { protocol, hostname, username, password, hash } = new URL(url);
      expect({ protocol, username, password, hash }).toEqual({
        protocol: "https:",
        username: "",
        password: "",
        hash: "",
      });
      expect(hostname).toContain(".");
      // The last label of a name is never one that makes an address of it.
      expect(hostname).toMatch(/^[a-z0-9_.-]+\.(?!\d+$|0x[0-9a-f]*$)[a-z0-9_-]+$/);
    }),
    { seed: 4, numRuns: 20_000 },
  );
  expect(accepted).toBeGreaterThan(1_000);
});
