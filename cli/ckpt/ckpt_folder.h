// `ranklab ckpt inspect | verify | diff` for checkpoints of training runs: folders with a manifest, or run folders,
// which stand for their newest checkpoint. Each prints its result and returns the exit code. Thread rule: main thread.
#pragma once
#include <string>

namespace ranklab {

int inspect_checkpoint(const std::string& folder, bool json);
int verify_checkpoint(const std::string& folder, bool json);
int diff_checkpoint_folders(const std::string& a, const std::string& b, bool json);  // 4 when they differ

}  // namespace ranklab
