// Lesson 5: what a rank of a pipeline does, in which order, with backward in two halves.
#pragma once
#include <algorithm>

#include "../order_api.h"

// Called once for every rank of a pipeline of `ranks`: writes down what this rank does with `microbatches`.
extern "C" void write_order(ranklab::lesson::Order& order, int rank, int ranks, int microbatches);
