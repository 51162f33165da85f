// What one training step of a run did and held (made by record_step.h). Torch-free. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/comm/rank_time.h"
#include "core/comm/traffic_count.h"
#include "core/sim/category_bytes.h"
#include "core/trace/event.h"

namespace ranklab {

// How far a record may deviate from the real run (from its second step, if batches differ) when experts get equal
// numbers of tokens; tests/plan checks it.
constexpr double kPeakTolerance = 0.05;
constexpr double kStepTimeTolerance = 0.01;
constexpr double kReducedPassesTolerance = 0.03;   // for step times, where many passes of a pipeline start reductions
constexpr double kSharedMatricesTolerance = 0.04;  // for step times, where many ranks have different matrices (Muon)
// for step times, where attention of many replicas stays within documents
constexpr double kReplicaDocumentsTolerance = 0.1;

// Up to this number of microbatches that may differ, each is run; none stands for another.
constexpr int kFewMicrobatches = 32;

struct RankRecord {
  int global_rank = 0;  // the slowest rank of its stage
  int pp_rank = 0;
  // For the fullest rank of its stage:
  CategoryBytes at_peak{};  // when the sum over categories is highest
  CategoryBytes highest{};  // the highest of each category separately
  CategoryBytes after{};    // at the end of the step
  TrafficCount traffic = {};
  RankTime time = {};
  std::vector<int64_t> kept_bytes = {};  // kept by one microbatch from F to its backward, for each of the rank's stages
  int64_t pass_ns = 0;                   // time of one microbatch in these stages, including exchanges inside them
  double pieces_us = 0;                  // time for the parameters that it updated (core/sim/software_terms.h)

  // Replaces bytes by those of `other`, a rank of the same stage, if it is fuller. Times and calls remain as they are.
  void keep_fuller(const RankRecord& other);
};

// Calls of repeated passes are only counted, or, for a trace that is to be viewed, also traced, at a cost proportional
// to their number.
enum class RepeatedCalls { kCounted, kTraced };

// What the clocks of one step of a few ranks do not show.
struct AddedTime {
  // time by which compute is longer because of concurrent collectives (core/sim/software_terms.h)
  double hidden_ns = 0;
  double pieces_ns = 0;        // time in which ranks send each other updated parameters one by one
  double slowest_ns = 0;       // time that all ranks wait for the slowest of many GPUs
  double outer_ns = 0;         // an outer update of DiLoCo, averaged over the steps between two of them
  double outer_update_ns = 0;  // the whole of it, for one fragment
};

struct StepRecord {
  // from the beginning of one step to the next, where each part takes as long as the slowest rank; with what is added
  int64_t step_ns = 0;
  AddedTime added = {};
  std::vector<RankRecord> ranks = {};  // in ascending global rank
  // A warning in words if attention stays within documents, but the data is not available; "" otherwise.
  std::string documents_warning() const;
  std::string documents_unknown = {};  // why attention counts each sequence as one document; "" if it does not
  std::vector<RankTrace> traces = {};  // traces of these ranks; see RepeatedCalls

  // REQUIRES: the record has a step, and this pipeline rank.
  const RankRecord& of_pipeline_rank(int pp_rank) const;
  const RankRecord& fullest() const;  // the rank with the highest peak
  // REQUIRES: `other` records the same step, with ranks of the same stages.
  void keep_fuller(const StepRecord& other);
  // Keeps one rank of each stage with its trace: the one that waits least for others; its memory is set to the fullest
  // rank's.
  void keep_slowest_of_stages();
  int64_t pass_ns() const;  // time of one microbatch in all stages together
  int64_t latest(int64_t RankTime::*when) const;
};

}  // namespace ranklab
