#include "core/sim/software.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// elementwise, products, products in 8 and 4 bits, attention, quantization
constexpr std::array kSoftware = {
    Software{},
    Software{"megatron",
             "Megatron-LM before Transformer Engine: products and a few fused kernels, fp16",
             {1, 1, 1, 1, 1},
             1},
    Software{"megatron_deepspeed", "Megatron-DeepSpeed", {1, 1, 1, 1, 1}, 1},
    Software{"megascale", "MegaScale: Megatron-LM with communication behind compute", {1, 1, 1, 1, 1}, 1},
    Software{"eager", "PyTorch without a compiler: each operation is a kernel", {1, 1, 1, 1, 1}, 1},
    Software{"compiled", "torch.compile: torchtitan and others", {1, 1, 1, 1, 1}, 1},
    Software{"transformer_engine", "Megatron-Core with Transformer Engine", {1, 1, 1, 1, 1}, 1}};

}  // namespace

std::span<const Software> software_rows() { return kSoftware; }

const Software& software_named(const std::string& name) {
  const auto* const row = std::ranges::find_if(kSoftware, [&](const Software& one) { return name == one.name; });
  if (row != kSoftware.end()) return *row;
  std::vector<std::string> names;
  for (const Software& one : kSoftware) names.emplace_back(one.name);
  const std::string nearest = nearest_name(name, names);
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "software",
               .what = "--software names none that was measured",
               .got = quote(name),
               .want = "one of " + join(names, ", "),
               .fix = nearest.empty() ? "choose one of these" : "write " + quote(nearest)});
}

}  // namespace ranklab
