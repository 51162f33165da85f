// What a run could not write. A full disk or a log folder that was removed is no reason to lose the training: it goes
// on, and so do its checkpoints, the loss is said on stderr at once, and whoever started the run learns of it at the
// end (ErrorKind::kOutputLost, the program's exit code). Thread rule: any thread.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/hooks.h"

namespace ranklab {

class LostOutputs {
 public:
  // `output` is what was written, as in "log"; said once for each.
  void note(const std::string& output, const std::string& reason);
  // What was said, in this order.
  std::vector<std::string> said() const;
  bool any() const { return !said().empty(); }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> outputs_;
};

// The hook, except that what it cannot write (kIo) once the run has begun is noted instead of ending the run.
std::shared_ptr<Hook> without_ending_the_run(std::shared_ptr<Hook> hook, std::string output,
                                             std::shared_ptr<LostOutputs> lost);

}  // namespace ranklab
