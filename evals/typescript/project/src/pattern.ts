/** What a pattern found in a path. */
export type Params = Record<string, string>;

/** `/users/:id` has a name in it, `/files/*rest` takes everything that follows. */
export class Pattern {
  private readonly parts: string[];

  constructor(readonly source: string) {
    this.parts = split(source);
  }

  match(path: string): Params | undefined {
    const given = split(path);
    const params: Params = {};
    for (let at = 0; at < this.parts.length; at++) {
      const part = this.parts[at]!;
      if (part.startsWith("*")) {
        params[part.slice(1)] = given.slice(at).join("/");
        return params;
      }
      const word = given[at];
      if (word === undefined) return undefined;
      if (part.startsWith(":")) params[part.slice(1)] = word;
      else if (part !== word) return undefined;
    }
    return params;
  }
}

function split(path: string): string[] {
  return path.split("/").filter((part) => part !== "").map(decodeURIComponent);
}
