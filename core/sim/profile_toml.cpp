#include "core/sim/profile_toml.h"

#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/toml/toml_string.h"
#include "core/sim/collective_efficiency.h"
#include "core/sim/kernel_time.h"

namespace ranklab {
namespace {

using Numbers = std::vector<std::pair<std::string, double>>;

std::string list(const std::vector<std::string>& texts) {
  std::string out = "[\n";
  for (const std::string& text : texts) out += "  " + toml_string(text) + ",\n";
  return out + "]\n";
}

std::string lines(const Numbers& numbers) {
  std::string out;
  for (const auto& [key, value] : numbers) out += key + strprintf(" = %.4g\n", value);
  return out;
}

Numbers numbers_of(const GemmEfficiency& e) {
  return {{"efficiency", e.efficiency}, {"tile_loss", e.tile_loss}, {"inner_overhead", e.inner_overhead},
          {"launch_us", e.launch_us},   {"bandwidth", e.bandwidth}, {"wave_rounding", e.wave_rounding},
          {"cached", e.cached},         {"split_us", e.split_us},   {"throttle", e.throttle}};
}

Numbers numbers_of(const AttentionEfficiency& e) {
  return {{"efficiency", e.efficiency},
          {"width_loss", e.width_loss},
          {"launch_us", e.launch_us},
          {"bandwidth", e.bandwidth},
          {"inner_overhead", e.inner_overhead},
          {"tail", e.tail},
          {"backward", e.backward},
          {"square", e.square}};
}

Numbers numbers_of(const CollectiveEfficiency& e) {
  Numbers out;
  for (size_t i = 0; const std::string length : {"_short", "_middle", "_long"}) {
    const Protocol& p = e.protocols.at(i++);
    out.insert(out.end(), {{"base_us" + length, p.base_us}, {"hop_us" + length, p.hop_us}, {"gb_s" + length, p.gb_s}});
  }
  out.insert(out.end(), {{"reduce_scatter", e.reduce_scatter},
                         {"all_reduce", e.all_reduce},
                         {"all_to_all", e.all_to_all},
                         {"across_nodes", e.across_nodes},
                         {"across_hop_us", e.across_hop_us}});
  return out;
}

Numbers numbers_of(const Link& link) {
  return {{"latency_ns", link.latency_ns}, {"bandwidth_gb_s", link.bandwidth_bytes_per_ns}};
}

}  // namespace

std::string profile_toml(const HardwareProfile& p, const std::map<std::string, std::string>& remarks) {
  const auto table = [&](const std::string& name, const Numbers& numbers) {
    const auto remark = remarks.find(name);
    return "\n[" + name + "]" + (remark == remarks.end() ? "" : "  # " + remark->second) + "\n" + lines(numbers);
  };
  std::string text = "name = " + toml_string(p.name) + "\ntitle = " + toml_string(p.title) + "\n";
  if (!p.gpu_names.empty()) text += "gpu_names = " + list(p.gpu_names);
  text += strprintf("compute_capability = %.1f\n", p.compute_capability);
  text += lines({{"peak_tflops_fp32", p.peak_flops_fp32 * 1e-12},
                 {"peak_tflops_fp64", p.peak_flops_fp64 * 1e-12},
                 {"peak_tflops_16bit", p.peak_flops_16bit * 1e-12},
                 {"peak_tflops_fp8", p.peak_flops_fp8 * 1e-12},
                 {"memory_bandwidth_gb_s", p.memory_bandwidth * 1e-9},
                 {"memory_gb", static_cast<double>(p.memory_bytes) * 1e-9},
                 {"launch_overhead_ns", p.launch_overhead_ns},
                 {"gpus_per_node", static_cast<double>(p.gpus_per_node)}});
  text += "sources = " + list(p.sources);
  text += table("intra_node", numbers_of(p.intra_node)) + table("inter_node", numbers_of(p.inter_node));
  const KernelEfficiency& k = *p.kernels;
  text +=
      table("kernels", {{"sms", static_cast<double>(k.sms)}, {"bandwidth", k.bandwidth}, {"launch_us", k.launch_us}});
  text += "sources = " + list(p.sources);
  text += table("kernels.gemm_16bit", numbers_of(k.gemm_16bit));
  if (k.gemm_8bit) text += table("kernels.gemm_8bit", numbers_of(*k.gemm_8bit));
  if (k.gemm_4bit) text += table("kernels.gemm_4bit", numbers_of(*k.gemm_4bit));
  text += table("kernels.attention", numbers_of(k.attention));
  text += table("collectives", numbers_of(*p.collectives)) + "sources = " + list(p.sources);
  return text;
}

}  // namespace ranklab
