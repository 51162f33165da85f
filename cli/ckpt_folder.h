// `ranklab ckpt inspect | verify | diff` of checkpoints of training runs: folders with a manifest, or run folders,
// whose newest checkpoint is meant. Each prints its result and returns the exit code. Thread rule: the main thread.
#pragma once
#include <string>

namespace ranklab {

int inspect_checkpoint(const std::string& folder, bool json);
int verify_checkpoint(const std::string& folder, bool json);
int diff_checkpoint_folders(const std::string& a, const std::string& b, bool json);  // 4 when they differ

}  // namespace ranklab
