import { CreateReplayInput } from "../../../app/replay/create-replay.ts";
import { ReplayAnswer } from "../../present/replay.ts";
import { answer, type Operation } from "../operation.ts";
import { act, create, list, OWN, read, type Noun } from "./shared.ts";

const REPLAY: Noun = {
  path: "replays",
  name: "Replay",
  one: "a replay",
  many: "Replays",
  access: OWN,
  row: ReplayAnswer,
};

export const replayOperations: Operation[] = [
  {
    ...create(REPLAY, {
      schema: CreateReplayInput,
      example: { filter: { error_class: "http_5xx", created_after: "2026-01-31T12:00:00.000Z" }, dry_run: true },
      description:
        "All that ended as `filter` says when this was asked for, in the order of its events at each endpoint, and a few at a " +
        "time. It goes on by itself: read it to see how far it is.",
      problems: ["quota_exceeded"],
    }),
    summary: "Deliver again what has ended, in bulk",
    answers: { 201: answer("It runs, or with `dry_run` waits to be started.", ReplayAnswer) },
  },
  list(REPLAY),
  read(REPLAY),
  act(REPLAY, "start", {
    id: "startReplay",
    summary: "Start a replay that was a dry run",
    answers: { 200: answer("It runs.", ReplayAnswer) },
    problems: ["replay_ended", "quota_exceeded"],
  }),
  act(REPLAY, "cancel", {
    id: "cancelReplay",
    summary: "Cancel a replay; what it has made goes on",
    answers: { 200: answer("Nothing more is replayed.", ReplayAnswer) },
    problems: ["replay_ended"],
  }),
];
