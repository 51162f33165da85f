// `ranklab bench hardware`: times products, attention, memory and collectives on the machine at hand, fits the
// constants of a hardware profile to them, and writes it for --hardware. Thread rule: main thread.
#pragma once
#include <string>

namespace ranklab {

struct BenchHardwareOptions {
  std::string device = "auto";  // auto: a GPU if there is one
  std::string out;              // the profile
  std::string like;             // of a GPU: the profile that has its datasheet and its links; empty: by the GPU's name
  bool quick = false, force = false, json = false;
};

int run_bench_hardware(const BenchHardwareOptions& options);

}  // namespace ranklab
