// The command-line flags that recreate the model of a checkpoint, for error messages to users who left them out.
// Torch-free. Thread rule: pure.
#pragma once
#include <string>

#include "core/checkpoint/manifest.h"

namespace ranklab {

// "--preset gpt_tiny --num-layers 2": the preset from which it was trained, and the differences from that preset. For
// an import, whose settings are in a file next to it, "--config FOLDER/model.toml". `folder`: the checkpoint's folder.
std::string model_flags(const CheckpointManifest& manifest, const std::string& folder);

}  // namespace ranklab
