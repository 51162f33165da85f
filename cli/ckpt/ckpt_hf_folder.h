// `ranklab ckpt inspect` of a Hugging Face folder: its model, tensors and other files as they are there, also of models
// that ranklab does not know. Thread rule: main thread.
#pragma once
#include <string>

namespace ranklab {

int inspect_hf_folder(const std::string& folder, bool json);  // returns the exit code

}  // namespace ranklab
