// `ranklab ckpt verify | diff` of a safetensors file, or of the files of a Hugging Face folder, whose tensors have the
// same names whichever file they are in. Thread rule: main thread.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/safetensors.h"

namespace ranklab {

struct TensorFiles {
  std::string path;
  bool is_folder = false;
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  // The file's metadata; of a folder what its config.json says, by its keys.
  std::map<std::string, std::string> remarks;
};

// Throws kIo, kBadFile for what is missing or not of the format.
TensorFiles open_tensor_files(const std::string& path);

// Both return the exit code.
int verify_tensor_files(const std::string& path, bool json);
int diff_tensor_files(const std::string& a, const std::string& b, bool json);

}  // namespace ranklab
