// Traces of PyTorch's profiler (torch.profiler, Kineto's Chrome JSON), one file per rank, as a TraceFile on the wall
// clock. GPU kernels form the compute lane, and NCCL kernels the calls. In a CPU profile, operators (cpu_op) form the
// compute lane, and the calls are those that c10d recorded (with a "Collective name"). "ProfilerStep#12" is step 12.
// The rank is taken from distributedInfo. Process groups become axes according to their description ("tp",
// "data_parallel" ...); other groups get the next free axis. Calls are numbered in order per group. Ring algorithms are
// assumed for the bytes sent. Files are aligned to one clock by baseTimeNanoseconds, and time starts at their first
// event. Source: torch/csrc/profiler and Kineto's output_json.cpp (torch 2.11). Thread rule: one thread.
#pragma once
#include <span>
#include <string>

#include "core/trace/chrome_reader.h"

namespace ranklab {

// A damaged file is read up to the damage, which `broken` reports. Throws kIo when a file cannot be opened, and
// kBadFile when one has no events or two files belong to the same rank.
TracePrefix read_pytorch_traces(std::span<const std::string> paths);

}  // namespace ranklab
