// Ranks for a lesson: a thread world in which every rank has a virtual clock and a recorder, and lesson_api's view of
// its communicators. Thread rule: one run at a time; the body runs on the ranks' threads.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/rank_context.h"
#include "lessons/exercise_library.h"
#include "lessons/lesson_api.h"

namespace ranklab::lesson {

struct RankSetup {
  ParallelDims dims = {};
  std::string hardware = "h100-sxm";
  int gpus_per_node = 0;                      // 0: the profile's
  const ExerciseLibrary* exercise = nullptr;  // provides the limits; null: the world's own
};

struct RankRecord {
  RankTrace trace;
  int64_t virtual_ns = 0;  // when the rank finished
  int64_t exposed_ns = 0;  // communication that compute did not hide

  int64_t calls(Verb verb) const;
  int64_t sent_bytes() const;  // as modelled for collectives; the actual bytes for messages
  int64_t link_ns() const;     // time of collectives, exposed or not
};

std::vector<RankTrace> traces_of(const std::vector<RankRecord>& records);

std::vector<RankRecord> run_ranks(const RankSetup& setup, const std::function<void(RankContext&)>& body);

// `comm` must outlive the result.
std::unique_ptr<Comm> make_comm(Communicator& comm);
// Throws kInvalidArgument if a call of `comm` (from make_comm()) was started but not waited for: its result is missing
// where it was needed, and nothing else reports this.
void require_all_waited(const Comm& comm);

}  // namespace ranklab::lesson
