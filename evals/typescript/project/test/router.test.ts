import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";

import { Pattern } from "../src/pattern.js";
import { Router } from "../src/router.js";

test("names are found", () => {
  deepEqual(new Pattern("/users/:id").match("/users/7"), { id: "7" });
});

test("the rest of a path is found", () => {
  deepEqual(new Pattern("/files/*path").match("/files/a/b.txt"), { path: "a/b.txt" });
});

test("a longer path does not fit", () => {
  equal(new Pattern("/users/:id").match("/users/7/posts"), undefined);
});

test("the first route that fits is taken", () => {
  const router = new Router<string>()
    .on("/users/:id", ({ id }) => `user ${id}`)
    .on("/users/:id/posts", ({ id }) => `posts of ${id}`);
  equal(router.handle("/users/7"), "user 7");
  equal(router.handle("/users/7/posts"), "posts of 7");
});
