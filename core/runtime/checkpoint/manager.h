// The checkpoints of a training run (--save, --load): the one to start from is chosen before any rank starts; ranks
// then restore their parts of it, hand in snapshots when a save is due, and wait for the last save at the end. Cost:
// none without --save and --load. Thread rule: shared by all ranks of a process.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/base/files/file_calls.h"
#include "core/comm/world.h"
#include "core/runtime/components.h"

namespace ranklab {

// Call in the process of rank 0: takes the lock of --save, removes leftovers there, and chooses and verifies the
// checkpoint that --load names. `tokenizer`: the tokenizer of the data, which is put into each checkpoint; "": that of
// the checkpoint from which the run starts, if it has one. Throws kInvalidArgument, kBadFile, kIo.
std::shared_ptr<CheckpointManager> make_checkpoint_manager(const World& world, const RunPlan& plan,
                                                           const std::map<std::string, std::string>& data,
                                                           const std::string& tokenizer = "",
                                                           FileCalls& calls = system_file_calls());

// Starts fresh and saves nothing.
std::shared_ptr<CheckpointManager> no_checkpoints();

}  // namespace ranklab
