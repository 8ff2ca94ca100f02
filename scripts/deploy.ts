/**
 * `npm run deploy -- [--env NAME] [--dry-run]`: makes what is missing in the Cloudflare account, and deploys. Every step
 * looks first and changes only what is not so, so it may be run again at any time, also after it stopped half-way.
 */
import { deploy } from "./deploy/deploy.ts";
import { runWrangler } from "./deploy/wrangler.ts";

process.exitCode = await deploy(process.argv.slice(2), { run: runWrangler, env: process.env, console });
