// Runs a message program (tests/pipeline/message_program.h) on the stand-in for NCCL, with real bytes: each rank is a
// thread, each channel a communicator of all ranks with a stream on each, an action waits for its messages and looks
// at what came. Thread rule: the test's thread.
#pragma once
#include <string>

#include "tests/pipeline/message_program.h"

namespace ranklab::stand_in {

constexpr const char* kNoProgress = "no progress";

// "" when it ran to its end with every message right; else what a rank met, or kNoProgress after `patience_ms` without
// any; the time that the communicators take does not count.
std::string run_program(const Schedule& schedule, const MessageProgram& program, int patience_ms);

}  // namespace ranklab::stand_in
