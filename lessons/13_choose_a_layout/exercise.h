// Lesson 13: the layout of a 70B model.
#pragma once

namespace ranklab::lesson {

// A model, a batch and a cluster.
struct Problem {
  int gpus = 0, gpus_per_node = 0;
  double memory_bytes = 0;  // per GPU; a tenth of it stays free
  int sequences = 0;        // per step, over all GPUs
  int sequence_length = 0, hidden = 0, layers = 0, heads = 0;
  double parameters = 0;
};

struct Layout {
  int tp = 1;              // GPUs that split each matrix
  int pp = 1;              // pipeline stages, with the schedule 1F1B
  int zero_stage = 0;      // of the gpus / (tp pp) replicas: 0 to 3; at most 2 with pp above 1
  int microbatch = 1;      // sequences that go through a stage at once
  bool recompute = false;  // every layer, in backward
};

}  // namespace ranklab::lesson

// Chooses the layout with the fastest step, as far as this can be told without a plan.
extern "C" void choose_layout(const ranklab::lesson::Problem& problem, ranklab::lesson::Layout& layout);
