// Assigns ids to the arrows between the two ends of a message, for a trace that comes in pieces: an end waits for the
// piece that contains the other one. Cost: O(n) per piece; memory for the waiting ends, which are few (messages sent
// but not received when a piece was taken). Thread rule: one thread.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/trace/lanes.h"

namespace ranklab {

// Where an arrow begins or ends in the file.
struct ArrowPlace {
  int global_rank = 0;
  Event event;
  int lane = 0;
};

struct ArrowEnd {
  int64_t id = 0;
  bool start = false;                      // whether the arrow leaves here
  std::optional<ArrowPlace> earlier = {};  // the other end, if it was in an earlier piece
};

class MessageArrows {
 public:
  using Ends = std::map<size_t, ArrowEnd>;  // by event index
  // Returns one result per trace; `lanes` are the traces' lanes. Ids continue from those of the previous piece.
  std::vector<Ends> number(std::span<const RankTrace> traces, std::span<const LaneMap> lanes);

 private:
  using Key = std::array<int64_t, 6>;
  static Key key_of(const RankTrace& trace, const Event& event);

  std::map<Key, ArrowPlace> waiting_;
  int64_t next_id_ = 1;
};

}  // namespace ranklab
