import { Pattern, type Params } from "./pattern.js";

export type Handler<T> = (params: Params) => T;

/** Handlers by pattern; the first that fits is taken. */
export class Router<T> {
  private readonly routes: { pattern: Pattern; handler: Handler<T> }[] = [];

  on(pattern: string, handler: Handler<T>): this {
    this.routes.push({ pattern: new Pattern(pattern), handler });
    return this;
  }

  handle(path: string): T | undefined {
    for (const { pattern, handler } of this.routes) {
      const params = pattern.match(path);
      if (params) return handler(params);
    }
    return undefined;
  }
}
