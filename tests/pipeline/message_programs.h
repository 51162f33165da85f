// Message programs beside the backend's own: what its checker and the library it stands for must refuse.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "tests/pipeline/message_program.h"

namespace ranklab {

// One communicator for all; sends are noted until the rank next needs a message, and start in one launch with its
// receives.
inline MessageProgram grouped_program(const Schedule& schedule) {
  MessageProgram program{.num_channels = 1, .connected = false, .ranks = {}};
  for (const std::vector<Action>& actions : schedule.ranks) {
    std::vector<ProgramStep>& steps = program.ranks.emplace_back();
    std::vector<Transfer> noted;
    const auto flush = [&] {
      if (!noted.empty()) steps.push_back({0, std::exchange(noted, {})});
    };
    for (const Action& action : actions) {
      const std::vector<PipelineMessage> needed = needed_messages(schedule, action);
      for (const PipelineMessage& message : needed) noted.push_back({false, message});
      if (!needed.empty()) flush();
      steps.push_back({});
      for (const PipelineMessage& message : made_messages(schedule, action)) noted.push_back({true, message});
    }
    flush();
  }
  return program;
}

// All lanes on one channel: one queue for both directions.
inline MessageProgram on_one_channel(MessageProgram program) {
  for (auto& steps : program.ranks) {
    for (ProgramStep& step : steps) step.channel = std::min(step.channel, 0);
  }
  program.num_channels = std::min(program.num_channels, 1);
  return program;
}

// Where the launches of one side of a channel are among a rank's steps.
inline std::vector<size_t> launches_of(const std::vector<ProgramStep>& steps, int channel, bool send) {
  std::vector<size_t> found;
  for (size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].channel == channel && steps[k].transfers[0].send == send) found.push_back(k);
  }
  return found;
}

}  // namespace ranklab
