#include "ring.h"

void ring_init(struct ring *ring)
{
	ring->next = 0;
	ring->count = 0;
}

void ring_push(struct ring *ring, int sample)
{
	ring->samples[ring->next] = sample;
	ring->next = (ring->next + 1) % RING_SIZE;
	if (ring->count < RING_SIZE)
		ring->count++;
}

bool ring_get(const struct ring *ring, size_t age, int *sample)
{
	if (age > ring->count)
		return false;
	*sample = ring->samples[(ring->next - 1 - age) % RING_SIZE];
	return true;
}

double ring_mean(const struct ring *ring)
{
	double sum = 0;

	for (size_t i = 0; i < ring->count; i++)
		sum += ring->samples[i];
	return sum / ring->count;
}
