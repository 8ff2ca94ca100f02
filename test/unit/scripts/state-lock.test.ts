import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listRunning } from "../../../scripts/processes.ts";
import { lockState } from "../../../scripts/state-lock.ts";

let stateDir: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "hooklane-lock-"));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(stateDir, { recursive: true, force: true });
});

const file = () => join(stateDir, "relay.pid");
const holder = () => readFileSync(file(), "utf8");

/** A shell that says one thing and stays. */
async function run(script: string, env: Record<string, string> = {}): Promise<{ pid: number; said: string }> {
  const child = spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, ...env } });
  children.push(child);
  const [said] = await once(child.stdout!, "data");
  return { pid: child.pid!, said: String(said).trim() };
}

test("a folder that nobody has is had, and let go", async () => {
  const unlock = await lockState(stateDir);
  expect(holder()).toBe(String(process.pid));
  unlock();
  expect(holder).toThrow("ENOENT");
});

test("one that a running process has is refused, with its number", async () => {
  const { pid } = await run("echo up; exec sleep 600");
  writeFileSync(file(), String(pid));
  await expect(lockState(stateDir, 100)).rejects.toThrow(`Process ${pid} has the state folder ${stateDir}`);
  expect(holder()).toBe(String(pid));
});

test("one whose process ends meanwhile is had", async () => {
  const { pid } = await run("echo up; exec sleep 600");
  writeFileSync(file(), String(pid));
  const locking = lockState(stateDir);
  children[0]!.kill("SIGKILL");
  (await locking)();
});

test("a process that was killed and that nobody collects has it no more", async () => {
  // A shell that has become something else does not wait for its children.
  const { said } = await run("sleep 0 & echo $!; exec sleep 600");
  writeFileSync(file(), said);
  (await lockState(stateDir))();
});

test("a number of its own was left by a process before, and what is no number by nobody", async () => {
  for (const left of [String(process.pid), "", "garbage", "-1"]) {
    writeFileSync(file(), left);
    (await lockState(stateDir))();
  }
});

test("processes are found by program and environment, one that has ended is not", async () => {
  const { pid } = await run("echo up; exec sleep 600", { HOOKLANE_TEST_MARK: "a" });
  // While it becomes another program it may have no command line.
  await expect.poll(() => listRunning("sleep", "HOOKLANE_TEST_MARK", "a")).toEqual([pid]);
  expect(listRunning("workerd", "HOOKLANE_TEST_MARK", "a")).toEqual([]);
  expect(listRunning("sleep", "HOOKLANE_TEST_MARK", "ab")).toEqual([]);
  const ended = once(children[0]!, "exit");
  children[0]!.kill("SIGKILL");
  await ended;
  expect(listRunning("sleep", "HOOKLANE_TEST_MARK", "a")).toEqual([]);
});
