// Outputs that a run could not write. A full disk or a removed log folder must not cost the training: the run and its
// checkpoints continue, and each lost output is reported on stderr at once and again by the exit code at the end
// (ErrorKind::kOutputLost). Thread rule: any thread.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/runtime/hooks.h"

namespace ranklab {

class LostOutputs {
 public:
  // `output` names what should have been written, such as "log"; each is reported once.
  void note(const std::string& output, const std::string& reason);
  // Calls `call`; if it cannot write (kIo), this is noted.
  template <typename Call>
  void forgive(const std::string& output, const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kIo) throw;
      note(output, error.what());
    }
  }
  // The reports, in order.
  std::vector<std::string> said() const;
  bool any() const { return !said().empty(); }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> outputs_;
};

// Wraps a hook: if it cannot write (kIo) once the run has begun, this is noted instead of ending the run.
std::shared_ptr<Hook> without_ending_the_run(std::shared_ptr<Hook> hook, std::string output,
                                             std::shared_ptr<LostOutputs> lost);

}  // namespace ranklab
