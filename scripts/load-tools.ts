/**
 * Miniflare and wrangler are bundles of many megabytes that do not say which kind of module they are. To `import` them Node
 * parses each several times to find out, which is half of a start; `require` takes them for what they are.
 */
import { createRequire } from "node:module";
import type * as miniflare from "miniflare";
import type * as wrangler from "wrangler";

const require = createRequire(import.meta.url);

export const loadMiniflare = (): typeof miniflare => require("miniflare");
export const loadWrangler = (): typeof wrangler => require("wrangler");
