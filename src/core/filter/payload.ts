import { MAX_INTEGER_DIGITS, MAX_PAYLOAD_VALUES } from "./language.ts";
import { TOO_LARGE, type Value } from "./values.ts";

/** A whole number of as many characters is read as a double without loss, which is faster. */
const SAFE_LENGTH = 15;

/**
 * A payload as filters see it, of bytes that are JSON within the depth a payload may have (`scanJson`). Nothing is rounded that
 * is whole: 9007199254740993 stays what it is. Of a member given twice the last counts. TOO_LARGE past MAX_PAYLOAD_VALUES.
 */
export function parsePayload(bytes: Uint8Array): Value | typeof TOO_LARGE {
  const text = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(bytes);
  const reader = new Reader(text);
  try {
    return reader.read();
  } catch (error) {
    if (error === TOO_LARGE) return TOO_LARGE;
    throw error;
  }
}

const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const LOWER_E = 0x65;

class Reader {
  private readonly text: string;
  private at = 0;
  private left = MAX_PAYLOAD_VALUES;

  constructor(text: string) {
    this.text = text;
  }

  read(): Value {
    if (this.left-- <= 0) throw TOO_LARGE;
    this.skipSpace();
    switch (this.text[this.at]) {
      case "{":
        return this.readMap();
      case "[":
        return this.readList();
      case '"':
        return this.readString();
      case "t":
        return this.readWord("true", true);
      case "f":
        return this.readWord("false", false);
      case "n":
        return this.readWord("null", null);
      default:
        return this.readNumber();
    }
  }

  private readMap(): Map<string, Value> {
    const map = new Map<string, Value>();
    for (this.at++, this.skipSpace(); this.text[this.at] !== "}"; this.skipSpace()) {
      if (this.text[this.at] === ",") this.at++;
      this.skipSpace();
      const key = this.readString();
      this.skipSpace();
      this.at++;
      map.set(key, this.read());
    }
    this.at++;
    return map;
  }

  private readList(): Value[] {
    const list: Value[] = [];
    for (this.at++, this.skipSpace(); this.text[this.at] !== "]"; this.skipSpace()) {
      if (this.text[this.at] === ",") this.at++;
      list.push(this.read());
    }
    this.at++;
    return list;
  }

  private readString(): string {
    const start = this.at;
    let end = this.text.indexOf('"', start + 1);
    let isEscaped = false;
    // A quote is the end unless an odd number of backslashes is before it.
    for (;;) {
      if (end < 0) throw new SyntaxError("no JSON");
      let slashes = 0;
      while (this.text[end - 1 - slashes] === "\\") slashes++;
      isEscaped ||= slashes > 0;
      if (slashes % 2 === 0) break;
      end = this.text.indexOf('"', end + 1);
    }
    this.at = end + 1;
    const inside = this.text.slice(start + 1, end);
    return isEscaped || inside.includes("\\") ? (JSON.parse(this.text.slice(start, end + 1)) as string) : inside;
  }

  private readNumber(): bigint | number {
    const start = this.at;
    let isInteger = true;
    for (;;) {
      const unit = this.text.charCodeAt(this.at);
      const isDigit = unit >= 0x30 && unit <= 0x39;
      if (!isDigit && !this.isPartOfNumber(unit)) break;
      if (!isDigit && unit !== MINUS) isInteger = false;
      this.at++;
    }
    if (this.at === start) throw new SyntaxError("no JSON");
    const text = this.text.slice(start, this.at);
    const digits = text.startsWith("-") ? text.length - 1 : text.length;
    if (!isInteger || digits > MAX_INTEGER_DIGITS) return Number(text);
    return BigInt(text.length <= SAFE_LENGTH ? Number(text) : text);
  }

  private isPartOfNumber(unit: number): boolean {
    return unit === MINUS || unit === PLUS || unit === POINT || (unit | 0x20) === LOWER_E;
  }

  private readWord<T extends Value>(word: string, value: T): T {
    this.at += word.length;
    return value;
  }

  private skipSpace(): void {
    for (;;) {
      const unit = this.text.charCodeAt(this.at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
      this.at++;
    }
  }
}
