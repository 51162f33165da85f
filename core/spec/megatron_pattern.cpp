#include "core/spec/megatron_pattern.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/spec/mamba_config.h"

namespace ranklab {
namespace {

constexpr char kGatedDeltaNet = 'G';  // a layer with linear attention; here it counts as a kind of attention

}  // namespace

bool MegatronPattern::has_linear() const { return std::ranges::find(linear, true) != linear.end(); }

MegatronPattern parse_megatron_pattern(const std::string& text) {
  MegatronPattern pattern;
  pattern.mtp_modules = split(text, '/');
  const std::vector<std::string> stages = split(pattern.mtp_modules.front(), '|');
  pattern.mtp_modules.erase(pattern.mtp_modules.begin());
  pattern.mixers = join(stages, "");
  if (stages.size() > 1)
    for (const std::string& stage : stages) pattern.stages.push_back(static_cast<int64_t>(stage.size()));
  for (char& letter : pattern.mixers) {
    pattern.linear.push_back(letter == kGatedDeltaNet);
    if (letter == kGatedDeltaNet) letter = static_cast<char>(LayerMixer::kAttention);
  }
  return pattern;
}

std::string own_mtp_module(bool has_experts) { return has_experts ? "*E" : "*-"; }

std::string other_mtp_module(const MegatronPattern& pattern, bool has_experts) {
  const auto other = std::ranges::find_if(
      pattern.mtp_modules, [&](const std::string& module) { return module != own_mtp_module(has_experts); });
  return other == pattern.mtp_modules.end() ? "" : *other;
}

}  // namespace ranklab
