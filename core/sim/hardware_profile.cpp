#include "core/sim/hardware_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/base/toml/toml.h"
#include "core/base/toml/toml_file.h"
#include "core/sim/profiles.h"

namespace ranklab {
namespace {

// Reads one table and remembers which keys were read, so that a misspelt key is an error and not a silent default.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string place) : table_(table), place_(std::move(place)) {}

  double number(const std::string& key, double lowest) {
    constexpr double kHighest = 1e6;  // beyond any machine, in the units of the file
    known_.push_back(key);
    const auto value = table_[key].value<double>();
    RANKLAB_CHECK(value && *value >= lowest && *value <= kHighest, ErrorKind::kBadFile, .where = place_,
                  .what = "bad value of " + quote(key), .got = value ? strprintf("%g", *value) : "no number",
                  .want = strprintf("a number from %g to %g", lowest, kHighest),
                  .fix = "correct the profile; core/sim/profiles/h100-sxm.toml is an example");
    return *value;
  }
  int count(const std::string& key) {
    const double value = number(key, 1);
    RANKLAB_CHECK(value == std::floor(value), ErrorKind::kBadFile, .where = place_,
                  .what = "bad value of " + quote(key), .got = strprintf("%g", value), .want = "a whole number",
                  .fix = "correct the profile; core/sim/profiles/h100-sxm.toml is an example");
    return static_cast<int>(value);
  }
  double compute_capability() {
    constexpr double kOldest = 5, kNewest = 19.9, kDecimal = 10;
    const std::string key = "compute_capability";
    known_.push_back(key);
    const auto value = table_[key].value<double>();
    const bool written_so = value && std::abs(*value * kDecimal - std::round(*value * kDecimal)) < 1e-6;
    RANKLAB_CHECK(
        written_so && (*value == 0 || (*value >= kOldest && *value <= kNewest)), ErrorKind::kBadFile, .where = place_,
        .what = table_.contains(key) ? "bad value of " + quote(key) : "the profile does not say its " + quote(key),
        .got = value ? strprintf("%g", *value) : "no number",
        .want =
            "MAJOR.MINOR from 5.0 to 19.9 as NVIDIA gives it, such as 8.0, 8.9, 9.0 or 10.0; 0 for a CPU or another "
            "vendor's GPU",
        .fix = "write what nvidia-smi --query-gpu=compute_cap --format=csv says");
    return *value;
  }
  std::string text(const std::string& key) {
    known_.push_back(key);
    const auto value = table_[key].value<std::string>();
    RANKLAB_CHECK(value && !value->empty(), ErrorKind::kBadFile, .where = place_, .what = "bad value of " + quote(key),
                  .got = "no text", .want = "a string in quotes",
                  .fix = "correct it; ranklab list hardware names profiles to start from");
    return *value;
  }
  std::vector<std::string> texts(const std::string& key) {
    known_.push_back(key);
    std::vector<std::string> out;
    if (const toml::array* array = table_[key].as_array()) {
      for (const toml::node& node : *array) out.push_back(node.value_or(std::string()));
    }
    RANKLAB_CHECK(!out.empty() && std::find(out.begin(), out.end(), "") == out.end(), ErrorKind::kBadFile,
                  .where = place_, .what = "bad value of " + quote(key), .got = "no list of texts",
                  .want = "a list with at least one text: where the figures are published",
                  .fix = "add the source of the figures");
    return out;
  }
  const toml::table& table(const std::string& key) {
    known_.push_back(key);
    const toml::table* table = table_[key].as_table();
    RANKLAB_CHECK(table != nullptr, ErrorKind::kBadFile, .where = place_, .what = "missing table [" + key + "]",
                  .want = "latency_ns and bandwidth_gb_s in it", .fix = "add the table");
    return *table;
  }
  void reject_unknown() const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      const std::string nearest = nearest_name(name, known_);
      throw Error(ErrorKind::kBadFile, {.where = place_,
                                        .what = "unknown key " + quote(name),
                                        .want = "one of " + join(known_, ", "),
                                        .fix = nearest.empty() ? "remove it" : "write " + quote(nearest)});
    }
  }

 private:
  const toml::table& table_;
  std::string place_;
  std::vector<std::string> known_;
};

Link read_link(const toml::table& table, const std::string& place) {
  TableReader reader(table, place);
  Link link;
  link.latency_ns = reader.number("latency_ns", 0);
  link.bandwidth_bytes_per_ns = reader.number("bandwidth_gb_s", 1e-6);
  reader.reject_unknown();
  return link;
}

GemmEfficiency read_gemm(const toml::table& table, const std::string& place) {
  TableReader reader(table, place);
  const GemmEfficiency e{.efficiency = reader.number("efficiency", 1e-6),
                         .tile_loss = reader.number("tile_loss", 0),
                         .inner_overhead = reader.number("inner_overhead", 0),
                         .launch_us = reader.number("launch_us", 0),
                         .bandwidth = reader.number("bandwidth", 1e-6),
                         .wave_rounding = reader.number("wave_rounding", 0),
                         .cached = reader.number("cached", 1e-6),
                         .split_us = reader.number("split_us", 0),
                         .throttle = reader.number("throttle", 0)};
  reader.reject_unknown();
  return e;
}

AttentionEfficiency read_attention(const toml::table& table, const std::string& place) {
  TableReader reader(table, place);
  const AttentionEfficiency e{.efficiency = reader.number("efficiency", 1e-6),
                              .width_loss = reader.number("width_loss", 0),
                              .launch_us = reader.number("launch_us", 0),
                              .bandwidth = reader.number("bandwidth", 1e-6),
                              .inner_overhead = reader.number("inner_overhead", 0),
                              .tail = reader.number("tail", 0),
                              .backward = reader.number("backward", 1e-6),
                              .square = reader.number("square", 1e-6)};
  reader.reject_unknown();
  return e;
}

KernelEfficiency read_kernels(const toml::table& table, const std::string& place) {
  TableReader reader(table, place);
  KernelEfficiency e;
  e.sms = static_cast<int>(reader.number("sms", 1));
  e.bandwidth = reader.number("bandwidth", 1e-6);
  e.launch_us = reader.number("launch_us", 0);
  e.gemm_16bit = read_gemm(reader.table("gemm_16bit"), place + " gemm_16bit");
  if (table.contains("gemm_8bit")) e.gemm_8bit = read_gemm(reader.table("gemm_8bit"), place + " gemm_8bit");
  if (table.contains("gemm_4bit")) e.gemm_4bit = read_gemm(reader.table("gemm_4bit"), place + " gemm_4bit");
  e.attention = read_attention(reader.table("attention"), place + " attention");
  reader.texts("sources");
  reader.reject_unknown();
  return e;
}

CollectiveEfficiency read_collectives(const toml::table& table, const std::string& place) {
  TableReader reader(table, place);
  CollectiveEfficiency e;
  for (size_t i = 0; const std::string length : {"_short", "_middle", "_long"})
    e.protocols.at(i++) = {.base_us = reader.number("base_us" + length, 0),
                           .hop_us = reader.number("hop_us" + length, 0),
                           .gb_s = reader.number("gb_s" + length, 1e-6)};
  e.reduce_scatter = reader.number("reduce_scatter", 1e-6);
  e.all_reduce = reader.number("all_reduce", 1e-6);
  e.all_to_all = reader.number("all_to_all", 1e-6);
  e.across_nodes = reader.number("across_nodes", 1e-6);
  e.across_hop_us = reader.number("across_hop_us", 0);
  reader.texts("sources");
  reader.reject_unknown();
  return e;
}

HardwareProfile parse(std::string_view text, const std::string& place) {
  const toml::table root = parse_toml(std::string(text), place, "correct that line");
  TableReader reader(root, place);
  HardwareProfile profile;
  profile.name = reader.text("name");
  profile.title = reader.text("title");
  profile.compute_capability = reader.compute_capability();
  profile.peak_flops_fp32 = reader.number("peak_tflops_fp32", 1e-6) * 1e12;
  profile.peak_flops_fp64 = reader.number("peak_tflops_fp64", 1e-6) * 1e12;
  profile.peak_flops_16bit = reader.number("peak_tflops_16bit", 1e-6) * 1e12;
  profile.peak_flops_fp8 = reader.number("peak_tflops_fp8", 0) * 1e12;
  profile.memory_bandwidth = reader.number("memory_bandwidth_gb_s", 1e-6) * 1e9;
  profile.memory_bytes = static_cast<int64_t>(reader.number("memory_gb", 1e-3) * 1e9);
  profile.launch_overhead_ns = reader.number("launch_overhead_ns", 0);
  profile.gpus_per_node = reader.count("gpus_per_node");
  profile.sources = reader.texts("sources");
  if (root.contains("gpu_names")) profile.gpu_names = reader.texts("gpu_names");  // as nvidia-smi prints them
  profile.intra_node = read_link(reader.table("intra_node"), place + " [intra_node]");
  profile.inter_node = read_link(reader.table("inter_node"), place + " [inter_node]");
  if (root.contains("kernels"))
    profile.kernels =
        std::make_shared<const KernelEfficiency>(read_kernels(reader.table("kernels"), place + " [kernels]"));
  if (root.contains("collectives"))
    profile.collectives = std::make_shared<const CollectiveEfficiency>(
        read_collectives(reader.table("collectives"), place + " [collectives]"));
  reader.reject_unknown();
  return profile;
}

// Read only once, because a search for a plan requests it for each of thousands of layouts.
HardwareProfile built_in(const BuiltInProfile& row) {
  static std::mutex mutex;
  static std::map<std::string_view, HardwareProfile> known;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(row.name);
  if (found != known.end()) return found->second;
  return known.emplace(row.name, parse(row.toml, "hardware profile " + std::string(row.name))).first->second;
}

HardwareProfile parsed_profile(const std::string& name_or_path) {
  if (name_or_path.ends_with(".toml")) {
    constexpr size_t kLimitBytes = 1 << 20;
    return parse(read_whole_file(name_or_path, kLimitBytes, {.where = "hardware profile", .fix = "check the path"}),
                 "hardware profile " + name_or_path);
  }
  for (const BuiltInProfile& profile : built_in_profiles()) {
    if (profile.name == name_or_path) return built_in(profile);
  }
  const std::vector<std::string> names = hardware_profile_names();
  const std::string nearest = nearest_name(name_or_path, names);
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "hardware profile",
               .what = "--hardware names no profile",
               .got = quote(name_or_path),
               .want = "one of " + join(names, ", ") + ", or a path ending in .toml",
               .fix = nearest.empty() ? "choose one of these" : "write " + quote(nearest)});
}

// Names of built-in profiles with measured kernels.
std::vector<std::string> measured_profiles() {
  std::vector<std::string> names;
  for (const std::string& name : hardware_profile_names()) {
    const HardwareProfile profile = parsed_profile(name);
    if (profile.kernels && profile.collectives) names.push_back(name);
  }
  return names;
}

}  // namespace

double HardwareProfile::peak_flops(DType dtype) const {
  switch (dtype) {
    case DType::kFloat64:
      return peak_flops_fp64;
    case DType::kBFloat16:
    case DType::kFloat16:
      return peak_flops_16bit;
    case DType::kFloat8:
      return peak_flops_fp8 > 0 ? peak_flops_fp8 : peak_flops_16bit;
    case DType::kFloat32:
    case DType::kInt64:
    case DType::kInt32:
    case DType::kUInt8:
    case DType::kBool:
    case DType::kOther:
      break;
  }
  return peak_flops_fp32;
}

HardwareProfile load_hardware_profile(const std::string& name_or_path, Efficiency efficiency) {
  HardwareProfile profile = parsed_profile(name_or_path);
  if (efficiency == Efficiency::kDatasheet) {
    profile.kernels = nullptr;
    profile.collectives = nullptr;
    return profile;
  }
  RANKLAB_CHECK(profile.kernels && profile.collectives, ErrorKind::kInvalidArgument, .where = "hardware profile",
                .what = "nobody measured kernels and collectives of this machine", .got = quote(name_or_path),
                .want = "a profile with [kernels] and [collectives]: " + join(measured_profiles(), ", "),
                .fix = "use --efficiency datasheet, or one of these profiles");
  return profile;
}

std::vector<std::string> hardware_profile_names() { return row_names(built_in_profiles()); }

std::optional<HardwareProfile> hardware_profile_of_gpu(const std::string& gpu_name) {
  if (gpu_name.empty()) return std::nullopt;  // CPU ranks call this too: read no profiles
  for (const BuiltInProfile& row : built_in_profiles()) {
    HardwareProfile profile = load_hardware_profile(std::string(row.name));
    const auto& names = profile.gpu_names;
    if (std::find(names.begin(), names.end(), gpu_name) != names.end()) return profile;
  }
  return std::nullopt;
}

}  // namespace ranklab
