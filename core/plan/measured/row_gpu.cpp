#include "core/plan/measured/row_gpu.h"

#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "core/plan/measured/row_reader.h"

namespace ranklab {
namespace {

struct GpuName {
  const char *in_text, *profile, *also_in_text = "";
};
// The first row is used whose words the text contains, in any case.
constexpr GpuName kGpus[] = {{"h100-96", "h100-96"},
                             {"gb300", "gb300"},
                             {"gb200", "gb200"},
                             {"b300", "b300"},
                             {"b200", "b200"},
                             {"h200", "h200"},
                             {"h800", "h800"},
                             {"h100", "h100-sxm"},
                             {"a100", "a100-40", "40gb"},
                             {"a100", "a100-40", "40 gb"},
                             {"a100", "a100-80"},
                             {"l40s", "l40s"}};
// GPUs without a profile, although a faster one of the same name has one.
constexpr std::array kSlowerGpus = {"pcie", "h100 nvl", "h100-nvl"};

}  // namespace

const char* profile_of_gpu(const std::string& gpu_type) {
  const std::string gpu = lower_case(gpu_type);
  if (std::ranges::any_of(kSlowerGpus, [&](const char* one) { return holds(gpu, one); })) return nullptr;
  for (const GpuName& row : kGpus)
    if (holds(gpu, row.in_text) && holds(gpu, row.also_in_text)) return row.profile;
  return nullptr;
}

}  // namespace ranklab
