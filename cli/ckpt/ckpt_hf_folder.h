// `ranklab ckpt inspect` for a Hugging Face folder: shows its model, tensors and other files as they are, also for
// models that ranklab cannot load. Thread rule: main thread.
#pragma once
#include <string>

namespace ranklab {

int inspect_hf_folder(const std::string& folder, bool json);  // returns the exit code

}  // namespace ranklab
