// The sends and receives that a torch schedule file may list: each must have its counterpart, come after the action
// that produces it and before the action that uses it. Cost: O(messages). Thread rule: pure function.
#pragma once
#include <string>
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

struct MessageCell {
  bool send = false;
  bool forward = false;  // an output, else a gradient
  int stage = 0;         // the stage that sends or receives
  int microbatch = 0;
  int rank = 0;
  int position = 0;   // number of the rank's actions before it
  std::string place;  // "row 3 (rank 2), column 7: 2SEND_F0"
};

// The problems, at most `most`. A file without such cells has none: its messages are derived.
std::vector<std::string> message_problems(const Schedule& schedule, const std::vector<MessageCell>& cells, size_t most);

}  // namespace ranklab
