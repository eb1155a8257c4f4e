#include <stdio.h>

#include "ring.h"

static int failures;

static void check(bool holds, const char *what)
{
	printf("%s: %s\n", holds ? "ok" : "NOT OK", what);
	failures += !holds;
}

int main(void)
{
	struct ring ring;
	int sample = -1;

	ring_init(&ring);
	check(!ring_get(&ring, 0, &sample), "an empty ring has no newest sample");
	check(ring_mean(&ring) == 0, "the mean of nothing is 0");
	ring_push(&ring, 10);
	check(ring_get(&ring, 0, &sample) && sample == 10, "the newest sample");
	check(!ring_get(&ring, 1, &sample), "there is none before the first");
	for (int i = 0; i < 9; i++)
		ring_push(&ring, i);
	check(ring_get(&ring, 7, &sample) && sample == 1, "the oldest of a full ring");
	check(ring_mean(&ring) == 4.5, "the mean of a full ring");
	printf("%d failures\n", failures);
	return failures != 0;
}
