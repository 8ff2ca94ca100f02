/** A line of a section's table, and of its rows in `bench-results.json`. Names carry their units; null is "not measured". */
export type Row = Record<string, string | number | boolean | null>;

export interface BenchContext {
  /** Less of everything, so that all of it takes two minutes; figures are rougher. */
  quick: boolean;
  /** Something for the reader, printed and kept beneath the rows of the section. */
  note(line: string): void;
  /** What went wrong and did not end the section: answers other than 2xx, events that never arrived. None at 0. */
  countErrors(what: string, count: number): void;
}

/** Measures, and gives back what it saw. Starts and stops its own relay. Asserts nothing. */
export type Section = (context: BenchContext) => Promise<Row[]>;
