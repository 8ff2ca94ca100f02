/** What histories use of Node, said here: its own types would take the place of the runtime's in all of `src`. */
declare module "node:sqlite" {
  export interface StatementSync {
    all(...params: unknown[]): Record<string, unknown>[];
    run(...params: unknown[]): unknown;
    setReturnArrays(enabled: boolean): void;
  }
  export class DatabaseSync {
    constructor(path: string);
    exec(sql: string): void;
    prepare(sql: string): StatementSync;
  }
}

declare module "node:crypto" {
  interface Hash {
    update(data: Uint8Array | string): Hash;
    digest(): Uint8Array;
    digest(encoding: "base64" | "hex"): string;
  }
  interface Cipher {
    setAAD(data: Uint8Array): Cipher;
    setAuthTag(tag: Uint8Array): Cipher;
    getAuthTag(): Uint8Array;
    update(data: Uint8Array): Uint8Array;
    final(): Uint8Array;
  }
  export class KeyObject {
    export(options: { format: "jwk" }): { x?: string };
  }
  export function createPrivateKey(key: { key: Uint8Array; format: "der"; type: "pkcs8" }): KeyObject;
  export function createPublicKey(key: KeyObject): KeyObject;
  export function sign(algorithm: null, data: Uint8Array, key: KeyObject): Uint8Array;
  export function createHash(algorithm: "sha256"): Hash;
  export function createHmac(algorithm: "sha256", key: Uint8Array): Hash;
  export function createCipheriv(algorithm: "aes-256-gcm", key: Uint8Array, iv: Uint8Array): Cipher;
  export function createDecipheriv(algorithm: "aes-256-gcm", key: Uint8Array, iv: Uint8Array): Cipher;
  export function timingSafeEqual(a: Uint8Array, b: Uint8Array): boolean;
}

declare module "node:fs" {
  export function readdirSync(path: string): string[];
  export function readFileSync(path: string, encoding: "utf8"): string;
  export function writeFileSync(path: string, text: string): void;
}

declare module "node:path" {
  export function join(...parts: string[]): string;
  export function resolve(...parts: string[]): string;
}

declare const process: { env: Record<string, string | undefined> };
interface ImportMeta {
  dirname: string;
}
