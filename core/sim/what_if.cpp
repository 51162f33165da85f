#include "core/sim/what_if.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/sim/gpu_generation.h"

namespace ranklab {
namespace {

// Limits for software costs; with any one of them at its limit, a step still fits in nanoseconds.
constexpr double kMostMicroseconds = 1e6, kMostFactor = 1e6, kMostShare = 1e3, kMostParts = 1e3, kMostMiB = 1e6;

struct Term {
  const char* name;
  double (*now)(const HardwareProfile&);
  void (*set)(Software&, double);
  double least, most;
  bool takes_time = true, is_switch = false;
};
template <KernelShape::Kind kKind>
constexpr Term kernels_of(const char* name) {
  return {name, [](const HardwareProfile& p) { return p.software.kernels[static_cast<size_t>(kKind)]; },
          [](Software& s, double value) { s.kernels[static_cast<size_t>(kKind)] = value; }, 0, kMostFactor};
}
template <double SoftwareTerms::*kTerm>
constexpr Term term_of(const char* name, double least, double most) {
  return {name, [](const HardwareProfile& p) { return p.software.terms.*kTerm; },
          [](Software& s, double value) { s.terms.*kTerm = value; }, least, most};
}
constexpr double kBytesOfMiB = 1024 * 1024;
using Kind = KernelShape::Kind;
constexpr Term kTerms[] = {
    term_of<&SoftwareTerms::launch_us>("launches", 0, kMostMicroseconds),
    {"launch-blocking", [](const HardwareProfile& p) { return p.software.terms.launch_blocking ? 1.0 : 0.0; },
     [](Software& s, double value) { s.terms.launch_blocking = value > 0; }, 0, 1, true, true},
    term_of<&SoftwareTerms::beside>("beside", 0, kMostShare),
    term_of<&SoftwareTerms::slowest>("slowest", 0, kMostShare),
    term_of<&SoftwareTerms::piece_us>("pieces", 0, kMostMicroseconds),
    {"collectives", [](const HardwareProfile& p) { return p.software.collectives; },
     [](Software& s, double value) { s.collectives = value; }, 0, kMostFactor},
    term_of<&SoftwareTerms::tensor_collectives>("tensor-collectives", 0, kMostFactor),
    term_of<&SoftwareTerms::sharded_across_nodes>("shards", 1, kMostFactor),
    term_of<&SoftwareTerms::message_us>("message-start", 0, kMostMicroseconds),
    {"messages", [](const HardwareProfile& p) { return static_cast<double>(p.software.terms.message_parts); },
     [](Software& s, double value) { s.terms.message_parts = static_cast<int>(std::lround(value)); }, 1, kMostParts},
    kernels_of<Kind::kOther>("elementwise"),
    kernels_of<Kind::kProduct>("products"),
    kernels_of<Kind::kLowProduct>("low-bit-products"),
    kernels_of<Kind::kAttention>("attention"),
    kernels_of<Kind::kQuantize>("quantization"),
    kernels_of<Kind::kLoss>("loss"),
    {"cublas-workspace", [](const HardwareProfile& p) { return cublas_workspace_bytes(p) / kBytesOfMiB; },
     [](Software& s, double value) { s.memory.cublas_mib = value; }, 0, kMostMiB, false},
    {"grouped-workspaces", [](const HardwareProfile& p) { return p.software.memory.grouped_workspaces; },
     [](Software& s, double value) { s.memory.grouped_workspaces = value; }, 0, kMostParts, false}};

[[noreturn]] void refuse_change(const std::string& got) {
  throw Error(
      ErrorKind::kInvalidArgument,
      {.where = "what-if",
       .what = "--what-if does not understand this change",
       .got = quote(got),
       .want = "peak, memory, nvlink or nic, = NUMBERx (times) or = NUMBER (GB/s, peak in TFLOP/s), or of the "
               "software " +
               what_if_terms() +
               ", = NUMBERx or = NUMBER (launches, message-start and pieces in microseconds, cublas-workspace in MiB; "
               "launch-blocking=1 is CUDA_LAUNCH_BLOCKING=1)",
       .fix = "write for example nvlink=2x,nic=12.5,slowest=0"});
}

void scale_nvlink(HardwareProfile& p, double factor) {
  p.intra_node.bandwidth_bytes_per_ns *= factor;
  if (p.collectives == nullptr) return;
  CollectiveEfficiency scaled = *p.collectives;
  for (Protocol& protocol : scaled.protocols) protocol.gb_s *= factor;
  p.collectives = std::make_shared<const CollectiveEfficiency>(scaled);
}

void scale_peak(HardwareProfile& p, double factor) {
  for (double* peak : {&p.peak_flops_fp32, &p.peak_flops_fp64, &p.peak_flops_16bit, &p.peak_flops_fp8}) *peak *= factor;
}

struct Change {
  const char* name;
  double (*now)(const HardwareProfile&);
  void (*scale)(HardwareProfile&, double);
};
constexpr Change kChanges[] = {
    {"peak", [](const HardwareProfile& p) { return p.peak_flops_16bit * 1e-12; }, scale_peak},
    {"memory", [](const HardwareProfile& p) { return p.memory_bandwidth * 1e-9; },
     [](HardwareProfile& p, double factor) { p.memory_bandwidth *= factor; }},
    {"nvlink", [](const HardwareProfile& p) { return p.intra_node.bandwidth_bytes_per_ns; }, scale_nvlink},
    {"nic", [](const HardwareProfile& p) { return p.inter_node.bandwidth_bytes_per_ns; },
     [](HardwareProfile& p, double factor) { p.inter_node.bandwidth_bytes_per_ns *= factor; }}};

// Without measured kernels software's terms do not apply, and most would have no effect.
void change_term(HardwareProfile& profile, const Term& term, double number, bool times, const std::string& change) {
  RANKLAB_CHECK(profile.kernels != nullptr || !term.takes_time, ErrorKind::kInvalidArgument, .where = "what-if",
                .what = "--what-if changes software, whose costs the datasheet's times do not have",
                .got = quote(change) + " with --efficiency datasheet", .want = "--efficiency measured",
                .fix = "add --efficiency measured, or leave the change out");
  const double now = times ? term.now(profile) * number : number;
  RANKLAB_CHECK(now >= term.least && now <= term.most && (!term.is_switch || now == term.least || now == term.most),
                ErrorKind::kInvalidArgument, .where = "what-if", .what = "--what-if goes beyond any software",
                .got = quote(change) + strprintf(", which makes %g", now),
                .want = strprintf("%s of %g %s %g", term.name, term.least, term.is_switch ? "or" : "to", term.most),
                .fix = "change it by less");
  term.set(profile.software, now);
}

void apply_one(HardwareProfile& profile, const std::string& change) {
  const size_t equals = change.find('=');
  if (equals == std::string::npos) refuse_change(change);
  const std::string name = change.substr(0, equals), value = change.substr(equals + 1);
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const std::string unit(end);
  const bool hexadecimal = value.find_first_of("xX") < static_cast<size_t>(end - value.c_str());
  if (end == value.c_str() || hexadecimal || (unit != "x" && !unit.empty()) || !std::isfinite(number) || number < 0)
    refuse_change(change);
  for (const Term& term : kTerms) {
    if (name == term.name) return change_term(profile, term, number, unit == "x", change);
  }
  if (number == 0) refuse_change(change);
  for (const Change& row : kChanges) {
    if (name != row.name) continue;
    row.scale(profile, unit == "x" ? number : number / row.now(profile));
    // As in a profile's file; with larger values, times would not fit in nanoseconds.
    constexpr double kLowest = 1e-6, kHighest = 1e6;
    const double now = row.now(profile);
    RANKLAB_CHECK(now >= kLowest && now <= kHighest, ErrorKind::kInvalidArgument, .where = "what-if",
                  .what = "--what-if goes beyond any machine",
                  .got = quote(change) + strprintf(", which makes %g", now),
                  .want = strprintf("%g to %g GB/s (peak: TFLOP/s)", kLowest, kHighest), .fix = "change it by less");
    return;
  }
  refuse_change(change);
}

void check_names(const std::vector<std::string>& changes) {
  std::set<std::string> names;
  for (const std::string& change : changes) {
    const std::string name = change.substr(0, change.find('='));
    RANKLAB_CHECK(names.insert(name).second, ErrorKind::kInvalidArgument, .where = "what-if",
                  .what = "--what-if changes the same twice", .got = quote(name) + " again", .want = "each name once",
                  .fix = "leave one of them out");
  }
}

}  // namespace

std::string what_if_terms() { return join(row_names(kTerms), ", "); }

void apply_what_if(HardwareProfile& profile, const std::string& text) {
  const std::vector<std::string> changes = text.empty() ? std::vector<std::string>{} : split(text, ',');
  check_names(changes);
  for (const std::string& change : changes) apply_one(profile, change);
  const SoftwareTerms& terms = profile.software.terms;
  RANKLAB_CHECK(!terms.launch_blocking || terms.launch_us > 0, ErrorKind::kInvalidArgument, .where = "what-if",
                .what = "--what-if launch-blocking=1 waits for launches that take no time",
                .got = quote(text) + " with --software " + profile.software.name,
                .want = "launches=MICROSECONDS beside it, or a software whose launches were measured",
                .fix = "add launches=45, as Megatron-Core's on Ampere and Hopper");
}

}  // namespace ranklab
