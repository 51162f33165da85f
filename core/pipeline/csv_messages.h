// The sends and receives that a torch schedule file may list: each must have its other side, stand after what it sends
// and before what it feeds. Cost: O(messages). Thread rule: pure function.
#pragma once
#include <string>
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

struct MessageCell {
  bool send = false;
  bool forward = false;  // an output, else a gradient
  int stage = 0;         // that sends or receives
  int microbatch = 0;
  int rank = 0;
  int position = 0;   // actions of the rank before it
  std::string place;  // "row 3 (rank 2), column 7: 2SEND_F0"
};

// What is wrong, at most `most`. No cells at all are right: then they are derived.
std::vector<std::string> message_problems(const Schedule& schedule, const std::vector<MessageCell>& cells, size_t most);

}  // namespace ranklab
