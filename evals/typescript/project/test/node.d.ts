declare module "node:test" {
  export function test(name: string, body: () => void): void;
}
declare module "node:assert/strict" {
  export function equal(actual: unknown, expected: unknown): void;
  export function deepEqual(actual: unknown, expected: unknown): void;
}
