#include "cli/bench/bench_hardware.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "backends/cuda/cuda_backend.h"
#include "cli/bench/bench_device.h"
#include "cli/bench/measure_hardware.h"
#include "cli/common/json_output.h"
#include "cli/common/table.h"
#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/output_file.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/sim/hardware_fit.h"
#include "core/sim/profile_toml.h"

namespace ranklab {
namespace {

constexpr const char* kHead = "# Written by ranklab bench hardware";

// Every constant of a CPU profile is measured; a rank is a thread with one core.
HardwareProfile of_a_core(const HardwarePoints& points, const HardwareSizes& sizes) {
  HardwareProfile profile;
  profile.title = "A core of this machine for each rank";
  for (const KernelPoint& one : points.products)
    profile.peak_flops_fp32 = std::max(profile.peak_flops_fp32, one.work.flops / one.seconds);
  profile.peak_flops_fp64 = points.flops_fp64;
  profile.peak_flops_16bit = points.flops_16bit;
  profile.memory_bandwidth = points.copy_bytes_per_s;
  profile.launch_overhead_ns = points.shortest_kernel_s * 1e9;
  profile.gpus_per_node = *std::ranges::max_element(sizes.ranks);
  // Ranks share the machine's memory.
  profile.memory_bytes = std::max<int64_t>(system_memory_bytes("MemTotal:") / profile.gpus_per_node, int64_t{1} << 30);
  profile.sources = {
      "measured here by ranklab bench hardware: peaks are the fastest products, the bandwidth is that of "
      "a copy, links are ranks that are threads of one process",
      "between nodes: not measured, as within the node"};
  return profile;
}

// Datasheet and links of a GPU are taken from a profile: the named one, or that of a GPU with this name. They are not
// measured, because this process sees one GPU only.
HardwareProfile of_a_gpu(std::string like) {
  if (like.empty()) {
    const std::string gpu = make_cuda_queues()->gpu_name();
    const std::optional<HardwareProfile> known = hardware_profile_of_gpu(gpu);
    RANKLAB_CHECK(known, ErrorKind::kInvalidArgument, .where = "bench hardware",
                  .what = "a GPU's peaks, SMs and links are not timed here, and no profile is one of this GPU",
                  .got = quote(gpu) + " and no --like", .want = "the profile from which these are taken",
                  .fix = "add --like with the closest profile, as in --like h100-sxm");
    like = known->name;
  }
  HardwareProfile profile = load_hardware_profile(like, Efficiency::kMeasured);
  profile.sources = {"kernels: measured here by ranklab bench hardware, starting from the constants of profile " + like,
                     "peaks, SMs, memory, links and collectives: profile " + like};
  return profile;
}

std::string error_text(const FitRow& row) {
  return strprintf("%zu points; of those %s half are within %.1f%%, nine of ten within %.1f%%", row.points,
                   row.held_out ? "not fitted" : "fitted", 100 * row.error.half, 100 * row.error.most);
}

std::map<std::string, std::string> remarks_of(const std::vector<FitRow>& rows) {
  std::map<std::string, std::string> remarks;
  for (const FitRow& row : rows) {
    std::string& text = remarks[row.table];
    text += (text.empty() ? "" : "; ") + row.what + ": " + error_text(row);
  }
  return remarks;
}

void print(const HardwareProfile& profile, const std::vector<FitRow>& rows, const BenchHardwareOptions& options) {
  std::printf("%s: %.3g TFLOP/s in fp32, %.3g in fp64, %.3g in 16 bits; memory %.3g GB/s; shortest kernel %s\n\n",
              profile.title.c_str(), profile.peak_flops_fp32 * 1e-12, profile.peak_flops_fp64 * 1e-12,
              profile.peak_flops_16bit * 1e-12, profile.memory_bandwidth * 1e-9,
              human_ns(profile.kernels->launch_us * 1e3).c_str());
  Table table({"fitted", "points", "error of", "half within", "nine of ten within"});
  for (const FitRow& row : rows)
    table.add({row.what, std::to_string(row.points), row.held_out ? "a third, not fitted" : "all",
               strprintf("%.1f %%", 100 * row.error.half), strprintf("%.1f %%", 100 * row.error.most)});
  std::printf("%s", table.for_stdout().c_str());
  if (!options.out.empty()) std::printf("\nwritten: %s, for --hardware %s\n", options.out.c_str(), options.out.c_str());
}

nlohmann::ordered_json rows_json(const std::vector<FitRow>& rows) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const FitRow& row : rows)
    all.push_back({{"fitted", row.what},
                   {"table", row.table},
                   {"points", row.points},
                   {"held_out", row.held_out},
                   {"half_within", row.error.half},
                   {"nine_of_ten_within", row.error.most}});
  return all;
}

}  // namespace

int run_bench_hardware(const BenchHardwareOptions& options) {
  RANKLAB_CHECK(options.out.empty() || options.out.ends_with(".toml"), ErrorKind::kInvalidArgument, .where = "--out",
                .what = "--hardware reads files that end in .toml", .got = quote(options.out), .want = "FILE.toml",
                .fix = "give it such a name");
  if (!options.out.empty())
    check_output({.path = options.out,
                  .option = "--out",
                  .own = [&] { return begins_with(options.out, kHead); },
                  .force = options.force});
  const at::Device device = bench_device(options.device, "bench hardware");
  RANKLAB_CHECK(device.is_cuda() || options.like.empty(), ErrorKind::kInvalidArgument, .where = "bench hardware",
                .what = "--like applies to GPUs, and a CPU is timed", .got = "--like " + options.like,
                .want = "no --like: everything of a CPU is measured", .fix = "leave it out, or add --device cuda");
  HardwareProfile profile = device.is_cuda() ? of_a_gpu(options.like) : HardwareProfile{};
  const HardwareSizes sizes = hardware_sizes(device.is_cuda(), options.quick);
  const HardwarePoints points = measure_hardware(device, sizes, device.is_cpu());
  if (device.is_cpu()) profile = of_a_core(points, sizes);
  profile.name = options.out.empty() ? "mine" : std::filesystem::path(options.out).stem().string();
  const std::vector<FitRow> rows = fit_profile(profile, points);
  if (!options.out.empty()) {
    AtomicFile file(options.out, {.where = "bench hardware", .what = "cannot write the profile", .fix = "check --out"});
    file.write(std::string(kHead) + ".\n" + profile_toml(profile, remarks_of(rows)));
    file.commit();
  }
  if (options.json)
    std::printf("%s", json_result({{"device", device.is_cuda() ? "cuda" : "cpu"}, {"rows", rows_json(rows)}}).c_str());
  else
    print(profile, rows, options);
  return 0;
}

}  // namespace ranklab
