// The command line's flags that make the model of a checkpoint, for who forgot them. Torch-free. Thread rule: pure.
#pragma once
#include <string>

#include "core/checkpoint/manifest.h"

namespace ranklab {

// "--preset gpt_tiny --num-layers 2": the preset it was trained from, and what differs from that; of an import, which
// has its settings in a file beside it, "--config FOLDER/model.toml". `folder`: of the checkpoint.
std::string model_flags(const CheckpointManifest& manifest, const std::string& folder);

}  // namespace ranklab
