// Writes tensors from any source as a checkpoint of format v2 (core/checkpoint/manifest.h): step 0, in files of 2 GiB,
// with the model's settings in the manifest and, for `ranklab train --config`, in model.toml. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <string>

#include "core/checkpoint/manifest.h"
#include "core/checkpoint/tensor_source.h"
#include "core/spec/model_config.h"

namespace ranklab {

struct WrittenCheckpoint {
  std::string folder = {};    // the checkpoint's: OUT/step_00000000
  std::string settings = {};  // the file OUT/model.toml
  size_t tensors = 0;
  uint64_t bytes = 0;  // of tensors
};

// Writes all tensors of `source` under their names. `manifest` provides everything else; `tokenizer`: the text of a
// tokenizer.json, "" for none. Throws kInvalidArgument if `run_folder` is not empty, and kIo.
WrittenCheckpoint write_checkpoint(const TensorSource& source, CheckpointManifest manifest, const ModelConfig& model,
                                   const std::string& run_folder, const std::string& tokenizer = "");
// The same for weights alone that come from other software.
WrittenCheckpoint write_imported(const TensorSource& source, const ModelConfig& model, const std::string& run_folder,
                                 const std::string& tokenizer = "");

}  // namespace ranklab
