#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stddef.h>

#define RING_SIZE 8

/* The last RING_SIZE samples of a sensor. */
struct ring {
	int samples[RING_SIZE];
	size_t next;
	size_t count;
};

void ring_init(struct ring *ring);
void ring_push(struct ring *ring, int sample);
/* The sample that came `age` samples before the newest; false if there is none. */
bool ring_get(const struct ring *ring, size_t age, int *sample);
double ring_mean(const struct ring *ring);

#endif
