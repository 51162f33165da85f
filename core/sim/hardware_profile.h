// What a simulated GPU and its links can do: public datasheet figures, one TOML file per machine in core/sim/profiles/,
// each figure with its source. Thread rule: immutable after load.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/sim/collective_efficiency.h"
#include "core/sim/kernel_time.h"
#include "core/sim/software.h"

namespace ranklab {

struct Link {
  double latency_ns = 0;              // alpha: one hop
  double bandwidth_bytes_per_ns = 1;  // GB/s, one direction, per GPU
};

struct HardwareProfile {
  std::string name;               // "h100-sxm"
  std::string title;              // "NVIDIA H100 SXM5 80 GB"
  double compute_capability = 0;  // 9.0 for Hopper; determines the generation (gpu_generation.h); 0: not an NVIDIA GPU
  double peak_flops_fp32 = 0;     // dense, FLOP/s; matrix units if they support the dtype (fp32 = TF32 off)
  double peak_flops_fp64 = 0;
  double peak_flops_16bit = 0;  // bf16 and fp16
  double peak_flops_fp8 = 0;
  double memory_bandwidth = 0;  // bytes/s
  int64_t memory_bytes = 0;
  double launch_overhead_ns = 0;  // per op
  // What real kernels and collectives reach; null: not measured, or the datasheet was requested.
  std::shared_ptr<const KernelEfficiency> kernels;
  std::shared_ptr<const CollectiveEfficiency> collectives;
  Software software;  // software, for measured efficiency
  Link intra_node;    // NVLink or shared memory
  Link inter_node;    // one NIC per GPU
  int gpus_per_node = 8;
  std::vector<std::string> sources;    // where the figures are published
  std::vector<std::string> gpu_names;  // the driver's names of this GPU; may be empty

  double peak_flops(DType dtype) const;  // integer types count as fp32
};

// Whether kernels and collectives take the time that the datasheet allows, or the time measured for real ones.
enum class Efficiency { kDatasheet, kMeasured };

// Loads NAME from the built-in profiles, or a path ending in .toml. Throws kInvalidArgument (with the nearest name, or
// for kMeasured with a profile that lacks [kernels] and [collectives]), kIo or kBadFile.
HardwareProfile load_hardware_profile(const std::string& name_or_path, Efficiency efficiency = Efficiency::kDatasheet);
std::vector<std::string> hardware_profile_names();
// The built-in profile of the GPU with this driver name ("NVIDIA H100 80GB HBM3"), if there is one.
std::optional<HardwareProfile> hardware_profile_of_gpu(const std::string& gpu_name);

}  // namespace ranklab
