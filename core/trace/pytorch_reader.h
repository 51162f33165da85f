// Traces of PyTorch's profiler (torch.profiler, Kineto's Chrome JSON), one file per rank, as a TraceFile on the wall
// clock. GPU kernels form the compute lane and NCCL kernels the calls; a CPU profile has its operators (cpu_op) and the
// calls that c10d recorded (names with a "Collective name"). "ProfilerStep#12" is step 12. The rank is
// distributedInfo's. Process groups become axes by their description ("tp", "data_parallel" ...), others the next free
// axis; calls are numbered in order per group. Ring algorithms are assumed for the bytes sent. Files are aligned to one
// clock by baseTimeNanoseconds, and time starts at their first event. Source: torch/csrc/profiler and Kineto's
// output_json.cpp (torch 2.11). Thread rule: one thread.
#pragma once
#include <span>
#include <string>

#include "core/trace/chrome_reader.h"

namespace ranklab {

// A damaged file is read up to the damage, which `broken` reports. Throws kIo when a file cannot be opened, kBadFile
// when one has no events, or when two files are of the same rank.
TracePrefix read_pytorch_traces(std::span<const std::string> paths);

}  // namespace ranklab
