// Lesson 13, exercise: choose the layout of a 70B model, for clusters and batches of several sizes.
//
// The planner stands in for the cluster: it runs the training code on shapes, with kernels and links as fast as those
// of real H100s. Your layout must fit (each GPU keeps a tenth of its memory free), and its step may take at most 10 %
// longer than that of the best layout that `ranklab plan search` finds.
//
// Divisibility: tp must divide the heads, tp x pp the GPUs, and the replicas, gpus / (tp pp), times the microbatch must
// divide the sequences of a step.
//
// The code below has neither tensor nor pipeline parallelism, and each GPU would hold the whole model: it fits nowhere.
//
// Check with:  ./ranklab lesson check 13
#include "exercise.h"

using namespace ranklab::lesson;

extern "C" void choose_layout([[maybe_unused]] const Problem& problem, Layout& layout) {
  // ---- your turn: 16 bytes of states a parameter, 25 of activations for each token, layer and hidden column ----
  layout.tp = 1;
  layout.pp = 1;
  layout.zero_stage = 0;
  // ---- end of your turn ----
}
