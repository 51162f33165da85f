#include "core/sim/what_if.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// What software costs, which a change switches off (= 0), or sets to what kernels alone take (= 1).
struct Term {
  const char* name;
  double& (*of)(Software&);
};
template <KernelShape::Kind kKind>
double& kernels_of(Software& s) {
  return s.kernels[static_cast<size_t>(kKind)];
}
using Kind = KernelShape::Kind;
constexpr Term kTerms[] = {{"launches", [](Software& s) -> double& { return s.terms.launch_us; }},
                           {"beside", [](Software& s) -> double& { return s.terms.beside; }},
                           {"slowest", [](Software& s) -> double& { return s.terms.slowest; }},
                           {"collectives", [](Software& s) -> double& { return s.collectives; }},
                           {"elementwise", kernels_of<Kind::kOther>},
                           {"products", kernels_of<Kind::kProduct>},
                           {"low-bit-products", kernels_of<Kind::kLowProduct>},
                           {"attention", kernels_of<Kind::kAttention>},
                           {"quantization", kernels_of<Kind::kQuantize>},
                           {"loss", kernels_of<Kind::kLoss>}};

std::vector<std::string> names_of_terms() {
  std::vector<std::string> names;
  for (const Term& term : kTerms) names.emplace_back(term.name);
  return names;
}

[[noreturn]] void refuse_change(const std::string& got) {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "what-if",
               .what = "--what-if does not understand this change",
               .got = quote(got),
               .want = "peak, memory, nvlink or nic, = NUMBERx (times) or = NUMBER (GB/s, peak in TFLOP/s), or of the "
                       "software " +
                       join(names_of_terms(), ", ") + ", = NUMBERx or = NUMBER",
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

void apply_one(HardwareProfile& profile, const std::string& change) {
  const size_t equals = change.find('=');
  if (equals == std::string::npos) refuse_change(change);
  const std::string name = change.substr(0, equals), value = change.substr(equals + 1);
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const std::string unit(end);
  if (end == value.c_str() || (unit != "x" && !unit.empty()) || !std::isfinite(number) || number < 0)
    refuse_change(change);
  for (const Term& term : kTerms) {
    if (name != term.name) continue;
    double& value_now = term.of(profile.software);
    value_now = unit == "x" ? value_now * number : number;
    return;
  }
  if (number == 0) refuse_change(change);
  for (const Change& row : kChanges) {
    if (name != row.name) continue;
    row.scale(profile, unit == "x" ? number : number / row.now(profile));
    // As in a profile's file: times beyond would not fit in nanoseconds.
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

}  // namespace

void apply_what_if(HardwareProfile& profile, const std::string& text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    apply_one(profile, text.substr(begin, comma - begin));
    begin = comma + 1;
  }
}

}  // namespace ranklab
