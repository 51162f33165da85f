// Ranks for a lesson: a thread world whose every rank has a virtual clock and a recorder, and the lesson_api view of
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
  const ExerciseLibrary* exercise = nullptr;  // whose limits to use; none: the world's own
};

struct RankRecord {
  RankTrace trace;
  int64_t virtual_ns = 0;  // when the rank was done
  int64_t exposed_ns = 0;  // communication that compute did not hide

  int64_t calls(Verb verb) const;
  int64_t sent_bytes() const;  // under the modelled algorithms; messages by what was sent
  int64_t link_ns() const;     // of collectives, hidden or not
};

std::vector<RankRecord> run_ranks(const RankSetup& setup, const std::function<void(RankContext&)>& body);

// `comm` outlives the result.
std::unique_ptr<Comm> make_comm(Communicator& comm);

}  // namespace ranklab::lesson
