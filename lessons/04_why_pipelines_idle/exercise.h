// Lesson 4: the order in which a pipeline rank works.
#pragma once
#include <algorithm>

#include "../order_api.h"

// Called once for every rank of a pipeline of `ranks`: writes this rank's order of work for `microbatches`.
extern "C" void write_order(ranklab::lesson::Order& order, int rank, int ranks, int microbatches);
