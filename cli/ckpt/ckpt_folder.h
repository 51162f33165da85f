// `ranklab ckpt inspect | verify | diff` for checkpoints of training runs. They take folders with a manifest, or run
// folders, where the newest checkpoint is used. Each function prints its result and returns the exit code. Thread rule:
// main thread.
#pragma once
#include <string>

namespace ranklab {

int inspect_checkpoint(const std::string& folder, bool json);
int verify_checkpoint(const std::string& folder, bool json);
int diff_checkpoint_folders(const std::string& a, const std::string& b, bool json);  // exit code 4 if they differ

}  // namespace ranklab
