/** The statements of docs/questions.sql, each with its number and what it asks. */
export interface Question {
  number: number;
  title: string;
  sql: string;
}

/** `-- <n>. <question>` begins each; comments and one statement follow. */
export function parseQuestions(text: string): Question[] {
  return text
    .split(/^-- (?=\d+\. )/m)
    .slice(1)
    .map((part) => {
      const [title = "", ...lines] = part.split("\n");
      return { number: Number.parseInt(title, 10), title: title.replace(/^\d+\. /, ""), sql: lines.join("\n").trim() };
    });
}

/** The statement with what a reader writes in the place of `'ten_…'` and the like. */
export function fillIn({ number, sql }: Question, values: Record<string, string>): string {
  const filled = Object.entries(values).reduce(
    (text, [name, value]) => text.replaceAll(`'${name}_…'`, `'${value}'`),
    sql,
  );
  if (filled.includes("…")) throw new Error(`Question ${number} wants more than ${Object.keys(values)}: ${filled}`);
  return filled;
}
