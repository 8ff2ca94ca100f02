import { FUNCTIONS, METHODS } from "./functions.ts";
import { COMPREHENSIONS, type Loop } from "./comprehensions.ts";
import { EVENT_FIELDS } from "./language.ts";
import { BINARY_OPERATORS, negate, type BinaryOperator } from "./operators.ts";
import type { ASTNode, SourceFault } from "./source.ts";
import { Fault, spend, TOO_LARGE, type Run, type Value } from "./values.ts";

/** A part of a filter, ready to run. It holds on to no part of the tree it was made of, which is several times as large. */
export type Evaluate = (run: Run) => Value | Fault;

/** The variables of the comprehensions around a node, each with its place in `Run.variables`. */
type Scope = ReadonlyMap<string, number>;

/** Thrown while compiling, and caught by whoever began it. */
export class NotCompiled {
  readonly fault: SourceFault;
  constructor(message: string, { pos }: { pos: number }) {
    this.fault = { message, position: pos };
  }
}

/** Each node costs a step. Throws `NotCompiled` for what is CEL and not of the language that filters are written in. */
export function compile(node: ASTNode, scope: Scope): Evaluate {
  const evaluate = compileNode(node, scope);
  return (run) => {
    spend(run, 1);
    return evaluate(run);
  };
}

function compileNode(node: ASTNode, scope: Scope): Evaluate {
  switch (node.op) {
    case "value":
      return literal(node);
    case "id":
      return name(node.args, node, scope);
    case ".":
      return select(node, scope);
    case "[]":
      return index(node, scope);
    case "list": {
      const elements = node.args.map((element) => compile(element, scope));
      return (run) => evaluateAll(run, elements);
    }
    case "map":
      return map(node.args, scope);
    case "?:":
      return ternary(node.args, scope);
    case "&&":
    case "||":
      return logical(node, scope);
    case "!_":
      return not(node, scope);
    case "-_":
      return negative(node, scope);
    case "call":
      return call(node, scope);
    case "rcall":
      return method(node, scope);
    default:
      return binary(node, scope);
  }
}

function literal({ args, pos }: ASTNode & { op: "value" }): Evaluate {
  // One kind of whole numbers is enough where all compare with each other: a uint is an int.
  const value: unknown = args === null ? null : args.valueOf();
  if (value !== null && typeof value === "object") throw new NotCompiled("bytes are not supported", { pos });
  return () => value as Value;
}

function name(identifier: string, { pos }: ASTNode, scope: Scope): Evaluate {
  const variable = scope.get(identifier);
  if (variable !== undefined) return (run) => run.variables[variable]!;
  if (identifier === "event") return (run) => run.event();
  if (identifier !== "payload") throw new NotCompiled(`Unknown variable: ${identifier}`, { pos });
  const absent = new Fault("absent", pos);
  const tooLarge = new Fault("payload_too_large", pos);
  return (run) => {
    const payload = run.payload();
    return payload === undefined ? absent : payload === TOO_LARGE ? tooLarge : payload;
  };
}

/** A field of whatever has no such field is absent: of null, of text, of a list. */
function select({ args: [object, field], pos }: ASTNode & { op: "." }, scope: Scope): Evaluate {
  if (object.op === "id" && object.args === "event" && !scope.has("event") && !Object.hasOwn(EVENT_FIELDS, field)) {
    throw new NotCompiled(`event has no field ${field}`, { pos });
  }
  const operand = compile(object, scope);
  const absent = new Fault("absent", pos);
  return (run) =>
    lift(operand(run), (value) => {
      const member = value instanceof Map ? value.get(field) : undefined;
      return member === undefined ? absent : member;
    });
}

function index({ args: [object, key], pos }: ASTNode & { op: "[]" }, scope: Scope): Evaluate {
  const operand = compile(object, scope);
  const keyed = compile(key, scope);
  const absent = new Fault("absent", pos);
  return (run) =>
    lift(operand(run), (value) =>
      lift(keyed(run), (at) => {
        const member =
          value instanceof Map ? value.get(at as string) : Array.isArray(value) ? elementAt(value, at) : undefined;
        return member === undefined ? absent : member;
      }),
    );
}

function elementAt(list: Value[], at: Value): Value | undefined {
  return typeof at === "bigint" || typeof at === "number" ? list[Number(at)] : undefined;
}

function map(entries: [ASTNode, ASTNode][], scope: Scope): Evaluate {
  const parts = entries.map(([key, value]) => [compile(key, scope), compile(value, scope), key.pos] as const);
  return (run) => {
    const made = new Map<string, Value>();
    for (const [keyed, evaluate, pos] of parts) {
      const key = keyed(run);
      if (key instanceof Fault) return key;
      if (typeof key !== "string") return new Fault("type_mismatch", pos);
      const value = evaluate(run);
      if (value instanceof Fault) return value;
      made.set(key, value);
    }
    return made;
  };
}

function ternary([condition, consequent, alternate]: [ASTNode, ASTNode, ASTNode], scope: Scope): Evaluate {
  const [test, yes, no] = [compile(condition, scope), compile(consequent, scope), compile(alternate, scope)];
  const { pos } = condition;
  return (run) => {
    const value = test(run);
    if (value instanceof Fault) return value;
    if (typeof value !== "boolean") return new Fault("type_mismatch", pos);
    return value ? yes(run) : no(run);
  };
}

/**
 * One operand that decides is enough, whatever is wrong with the others; of several faults the first stands. A chain of the
 * same operator is one node, so that a hundred alternatives nest no deeper than two.
 */
function logical(node: ASTNode & { op: "&&" | "||" }, scope: Scope): Evaluate {
  const operands: [Evaluate, number][] = [];
  let first: ASTNode = node;
  while (first.op === node.op) {
    const [left, right] = first.args as [ASTNode, ASTNode];
    operands.unshift([compile(right, scope), right.pos]);
    first = left;
  }
  operands.unshift([compile(first, scope), first.pos]);
  const decides = node.op === "||";
  return (run) => {
    let fault: Fault | null = null;
    for (const [operand, pos] of operands) {
      const value = operand(run);
      if (value === decides) return decides;
      if (value !== !decides) fault ??= value instanceof Fault ? value : new Fault("type_mismatch", pos);
    }
    return fault ?? !decides;
  };
}

function not({ args, pos }: ASTNode & { op: "!_" }, scope: Scope): Evaluate {
  const operand = compile(args, scope);
  return (run) =>
    lift(operand(run), (value) => (typeof value === "boolean" ? !value : new Fault("type_mismatch", pos)));
}

function negative({ args, pos }: ASTNode & { op: "-_" }, scope: Scope): Evaluate {
  const operand = compile(args, scope);
  return (run) => lift(operand(run), (value) => negate(value, pos));
}

function binary(node: ASTNode, scope: Scope): Evaluate {
  const operator = BINARY_OPERATORS[node.op as BinaryOperator];
  if (operator === undefined) throw new NotCompiled(`${node.op} is not supported`, node);
  const [a, b] = (node.args as [ASTNode, ASTNode]).map((operand) => compile(operand, scope)) as [Evaluate, Evaluate];
  const { pos } = node;
  return (run) => lift(a(run), (left) => lift(b(run), (right) => operator(run, left, right, pos)));
}

function call({ args: [called, given], pos }: ASTNode & { op: "call" }, scope: Scope): Evaluate {
  if (called === "has" && given.length === 1) return has(given[0]!, scope);
  const convert = Object.hasOwn(FUNCTIONS, called) ? FUNCTIONS[called] : undefined;
  if (!convert || given.length !== 1) throw new NotCompiled(`${called}() is not supported`, { pos });
  const argument = compile(given[0]!, scope);
  return (run) => lift(argument(run), (value) => convert(run, value, pos));
}

/** Whether the whole way is there, not its last step alone. */
function has(argument: ASTNode, scope: Scope): Evaluate {
  if (argument.op !== ".") throw new NotCompiled("has() takes a field, as in has(payload.total)", argument);
  const field = compile(argument, scope);
  return (run) => {
    const value = field(run);
    if (!(value instanceof Fault)) return true;
    return value.reason === "absent" ? false : value;
  };
}

function method(node: ASTNode & { op: "rcall" }, scope: Scope): Evaluate {
  const [called, receiver, given] = node.args;
  // The node begins where its receiver does.
  const pos = node.input.indexOf(called, receiver.end);
  const loop = Object.hasOwn(COMPREHENSIONS, called) ? COMPREHENSIONS[called] : undefined;
  if (loop && loop.arities.includes(given.length)) return comprehension(loop, receiver, given, pos, scope);
  const operand = compile(receiver, scope);
  if (called === "size" && given.length === 0) {
    return (run) => lift(operand(run), (value) => FUNCTIONS["size"]!(run, value, pos));
  }
  const known = Object.hasOwn(METHODS, called) ? METHODS[called] : undefined;
  if (!known || known.arity !== given.length) throw new NotCompiled(`${called}() is not supported`, { pos });
  const argument = known.arity === 1 ? compile(given[0]!, scope) : () => "";
  return (run) =>
    lift(operand(run), (text) =>
      lift(argument(run), (other) =>
        typeof text === "string" && typeof other === "string"
          ? known.call(run, text, other)
          : new Fault("type_mismatch", pos),
      ),
    );
}

function comprehension(loop: Loop, receiver: ASTNode, given: ASTNode[], pos: number, scope: Scope): Evaluate {
  const [variable, ...bodies] = given as [ASTNode, ...ASTNode[]];
  if (variable.op !== "id") throw new NotCompiled("the first argument names a variable", variable);
  const range = compile(receiver, scope);
  const place = Math.max(-1, ...scope.values()) + 1;
  const inner = new Map(scope).set(variable.args, place);
  const parts = bodies.map((body) => compile(body, inner));
  const positions = bodies.map((body) => body.pos);
  return (run) =>
    lift(range(run), (value) => {
      // One by one, as they are paid for: a copy of all keys would be work that no step stands for.
      const items = Array.isArray(value) ? value : value instanceof Map ? value.keys() : null;
      if (items === null) return new Fault("type_mismatch", pos);
      return loop.run(run, items, parts, positions, (item) => {
        spend(run, 1);
        run.variables[place] = item;
      });
    });
}

function evaluateAll(run: Run, parts: Evaluate[]): Value | Fault {
  const values: Value[] = [];
  for (const part of parts) {
    const value = part(run);
    if (value instanceof Fault) return value;
    values.push(value);
  }
  return values;
}

/** What a function makes of a value; a fault stays one. */
function lift(value: Value | Fault, next: (value: Value) => Value | Fault): Value | Fault {
  return value instanceof Fault ? value : next(value);
}
