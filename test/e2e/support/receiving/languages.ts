const node = process.execPath;

/** One `verify` of docs/receiving.md, and how it is run. */
interface Language {
  name: string;
  file: string;
  driver: string;
  /** What must be on the machine; without it the test is skipped, and says so. */
  needs: string[];
  /** Each of these in turn; the last one prints the verdicts. */
  commands: string[][];
  environment?: Record<string, string>;
}

export const LANGUAGES: Language[] = [
  {
    name: "JavaScript, with a library",
    file: "verify-with-library.mjs",
    driver: "verify-cases.mjs",
    needs: [node],
    commands: [[node, "verify-cases.mjs", "verify-with-library.mjs"]],
  },
  {
    name: "JavaScript, by hand",
    file: "verify.mjs",
    driver: "verify-cases.mjs",
    needs: [node],
    commands: [[node, "verify-cases.mjs", "verify.mjs"]],
  },
  {
    name: "Python",
    file: "verify.py",
    driver: "verify_cases.py",
    needs: ["python3"],
    commands: [["python3", "verify_cases.py"]],
  },
  {
    name: "Go",
    file: "webhooks/verify.go",
    driver: "main.go",
    needs: ["go"],
    commands: [
      ["go", "mod", "init", "receiver"],
      ["go", "run", "."],
    ],
    // It has nothing to fetch: not a module, not another toolchain.
    environment: { GOPROXY: "off", GOTOOLCHAIN: "local", GOFLAGS: "", GOWORK: "off" },
  },
  {
    name: "Java",
    file: "Webhooks.java",
    driver: "VerifyCases.java",
    needs: ["javac", "java"],
    commands: [
      ["javac", "Webhooks.java", "VerifyCases.java"],
      ["java", "-cp", ".", "VerifyCases"],
    ],
  },
  {
    name: "PHP",
    file: "verify.php",
    driver: "verify-cases.php",
    needs: ["php"],
    commands: [["php", "verify-cases.php"]],
  },
];
