// What one training step of a run did and held (record_step.h makes it). Torch-free. Thread rule: plain data.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/plan/traffic_count.h"
#include "core/sim/category_bytes.h"
#include "core/sim/kernel_shape.h"
#include "core/trace/event.h"

namespace ranklab {

// Times of a step or a part of it, on the virtual clock.
struct RankTime {
  int64_t begin_ns = 0, end_ns = 0;
  int64_t compute_ns = 0;
  std::array<int64_t, static_cast<size_t>(Axis::kCount)> exposed_ns{};
  int64_t waited_ns = 0;  // for a peer, or for the collectives before one's own on their stream
  double flops = 0;       // of GEMMs and attention, without recomputation
  KernelTimes kernel_times{};

  // What passed from the end of `before` to the end of this.
  RankTime since(const RankTime& before) const;
};

// How far a record may deviate from the real run (its second step, where batches differ), when experts get equally many
// tokens; tests/plan enforces it.
constexpr double kPeakTolerance = 0.05;
constexpr double kStepTimeTolerance = 0.01;
constexpr double kReducedPassesTolerance = 0.03;   // of step times, where many passes of a pipeline begin reductions
constexpr double kSharedMatricesTolerance = 0.04;  // of step times, where many ranks have different matrices (Muon)
constexpr double kReplicaDocumentsTolerance =
    0.1;  // of step times, where many replicas' attention keeps within documents

// Of at most so many microbatches that may differ none stands for another.
constexpr int kFewMicrobatches = 32;

struct RankRecord {
  int global_rank = 0;  // the slowest of its stage
  int pp_rank = 0;
  // Of the fullest rank of its stage.
  CategoryBytes at_peak{};  // when the sum is highest
  CategoryBytes highest{};  // of each category separately
  CategoryBytes after{};    // when the step has ended
  TrafficCount traffic = {};
  RankTime time = {};
  std::vector<int64_t> kept_bytes = {};  // by a microbatch from F to its backward, for each of its stages
  int64_t pass_ns = 0;                   // of a microbatch in these stages, with the exchanges within them
  double pieces_us = 0;                  // of what it updated (core/sim/software_terms.h)

  // Bytes become those of `other`, a rank of the same stage, if it is fuller; times and calls stay as they are.
  void keep_fuller(const RankRecord& other);
};

// The calls of repeated passes are counted; a trace that is to be looked at has them, too, at a cost of their number.
enum class RepeatedCalls { kCounted, kTraced };

struct StepRecord {
  int64_t step_ns = 0;     // from step to step, each part as long as the slowest rank's; with the next three
  int64_t hidden_ns = 0;   // that compute takes longer beside collectives (core/sim/software_terms.h)
  int64_t pieces_ns = 0;   // that ranks take to hand each other updated parameters one by one
  int64_t slowest_ns = 0;  // that all wait for the slowest of many GPUs
  std::vector<RankRecord> ranks = {};  // in ascending global rank
  // In words, where attention keeps within documents of data that are not here; "": it does not, or they are.
  std::string documents_warning() const;
  std::string documents_unknown = {};  // why attention within documents counts each sequence as one; "": it does not
  std::vector<RankTrace> traces = {};  // what they recorded; see RepeatedCalls

  // REQUIRE: a record of a step, of such a pipeline rank.
  const RankRecord& of_pipeline_rank(int pp_rank) const;
  const RankRecord& fullest() const;  // the rank with the highest peak
  // REQUIRE: a record of the same step, of ranks of the same stages.
  void keep_fuller(const StepRecord& other);
  // One rank of each stage, with its trace: the one that waits least for others, and is as full as the fullest.
  void keep_slowest_of_stages();
  int64_t pass_ns() const;  // of a microbatch in all stages together
  int64_t latest(int64_t RankTime::*when) const;
};

}  // namespace ranklab
