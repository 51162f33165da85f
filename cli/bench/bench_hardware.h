// `ranklab bench hardware`: times matrix products, attention, memory and collectives on this machine, fits the
// constants of a hardware profile to the times, and writes the profile for --hardware. Thread rule: main thread.
#pragma once
#include <string>

namespace ranklab {

struct BenchHardwareOptions {
  std::string device = "auto";  // auto: a GPU if there is one
  std::string out;              // the profile's file
  std::string like;             // for a GPU: the profile with its datasheet and links; empty: chosen by the GPU's name
  bool quick = false, force = false, json = false;
};

int run_bench_hardware(const BenchHardwareOptions& options);

}  // namespace ranklab
