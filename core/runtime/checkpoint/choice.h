// Which checkpoint a run starts from, decided before any rank starts, in the process of rank 0: the newest intact one
// of a folder, each verified to the last byte and skipped with a warning when it is damaged; or the one that was named.
// Cost: every byte of the chosen checkpoint is read once. Torch-free. Thread rule: pure.
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

// REQUIRES: the lock of config.save_dir, if there is one. Throws kInvalidArgument (settings that do not match, a folder
// that holds another run's checkpoints), kBadFile (no intact one), kIo (nothing there).
CheckpointChoice choose_checkpoint(const RunPlan& plan, const SettingTexts& data);

}  // namespace ranklab
