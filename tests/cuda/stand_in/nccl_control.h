// How a test makes the stand-in for NCCL report what the real one would: an error that its threads found. Thread rule:
// any thread.
#pragma once
#include <nccl.h>

namespace ranklab::stand_in {

// From now on every communicator that this device is in reports the error there (ncclCommGetAsyncError).
void report_error(int device, ncclResult_t error);
// Communicators that were neither destroyed nor aborted.
int live_communicators();

}  // namespace ranklab::stand_in
