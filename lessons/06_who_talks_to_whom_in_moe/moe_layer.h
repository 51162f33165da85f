// The mixture of experts in lesson 6: 8 ranks with one expert each, y = sum over a token's two experts of weight x
// tanh(x A_e) B_e. Dispatch and combine are the learner's or the lesson's own. fp64; virtual time is that of a laptop.
// Legend: T tokens of a rank, H hidden, F features of an expert. Thread rule: one run at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "lessons/06_who_talks_to_whom_in_moe/exercise.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {

constexpr int kExpertRanks = 8;
constexpr int64_t kExpertHidden = 64, kExpertFeatures = 256;
constexpr int64_t kRowBytes = kExpertHidden * 8;

struct TokenPath {
  std::function<void(Comm&, const Routing&, size_t, std::span<const double>, Trip&)> dispatch;
  std::function<void(Comm&, const Routing&, size_t, const Trip&, std::span<const double>, std::span<double>)> combine;
};
TokenPath straight_path();

// The router's decision: the number of copies per expert, for each rank. A rank's copies are assigned so that the two
// experts of a token differ. REQUIRES: the sum of each rank is even, and no expert gets more than half of it.
using Copies = std::vector<std::vector<int64_t>>;  // [rank][expert]
Copies even_router(int64_t tokens);
Copies skewed_router();  // 1024 tokens per rank; the fullest expert gets twice the mean
Copies ragged_router();  // a different number of tokens on every rank, one without any; an expert without any

struct MoeRun {
  std::vector<RankRecord> records;
  double error = 0;       // relative error of the output, compared with one rank that has all experts; NaN is kept
  int64_t arrived = 0;    // rows in all inboxes
  int64_t misplaced = 0;  // copies that are not in their expert's inbox, or were changed
  std::vector<std::vector<double>> dispatch_bytes, combine_bytes;  // [from][to]: of the last all_to_all of each
  int64_t all_to_alls = 0;                                         // on rank 0
  int64_t slowest_expert_ns = 0;                                   // the longest time that an expert computed
  int64_t layer_ns = 0;                                            // until the last rank had its output
};
MoeRun run_moe(const Copies& copies, const TokenPath& path, const ExerciseLibrary* exercise = nullptr);

}  // namespace ranklab::lesson
