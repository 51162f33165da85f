// Chooses the checkpoint from which a run starts, before any rank starts and in the process of rank 0: either the one
// that was named, or the newest intact one of a folder, where each candidate is verified to the last byte and skipped
// with a warning when it is damaged. Cost: every byte of the chosen checkpoint is read once. Torch-free. Thread rule:
// pure.
#pragma once
#include <memory>
#include <string>

#include "core/checkpoint/checkpoint.h"
#include "core/config/train_config.h"
#include "core/runtime/checkpoint/settings.h"

namespace ranklab {

struct CheckpointChoice {
  std::shared_ptr<const Checkpoint> checkpoint;  // null: a fresh start
  std::string text = {};                         // one line for the start banner; "" without --load
};

DataCursor data_cursor(const CheckpointChoice& choice, bool finetune);

// REQUIRES: the lock of config.save_dir, if there is one. Throws kInvalidArgument (settings do not match, or the folder
// holds another run's checkpoints), kBadFile (no checkpoint is intact), kIo (nothing is there).
CheckpointChoice choose_checkpoint(const RunPlan& plan, const SettingTexts& data);

}  // namespace ranklab
