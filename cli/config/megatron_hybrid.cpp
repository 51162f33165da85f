#include "cli/config/megatron_hybrid.h"

#include <algorithm>

#include "cli/config/megatron_words.h"
#include "core/base/text.h"
#include "core/spec/layer_pattern.h"
#include "core/spec/mamba_config.h"

namespace ranklab {
namespace {

constexpr char kGatedDeltaNet = 'G';  // a layer with linear attention; here it counts as a kind of attention

// An MTP module here consists of attention and the MLP or experts that the model's layers have after it.
void check_mtp(const std::vector<std::string>& modules, const std::string& flag, bool has_experts) {
  const std::string own = has_experts ? "*E" : "*-";
  for (const std::string& module : modules)
    if (module != own)
      refuse_megatron(flag + " has MTP modules of other layers than ranklab's", "/" + module,
                      "/" + own + " for each module", "leave them out, or write /" + own);
}

}  // namespace

MegatronHybrid read_megatron_hybrid(const std::string& pattern, const std::string& flag, bool has_experts) {
  MegatronHybrid hybrid;
  std::vector<std::string> modules = split(pattern, '/');
  const std::vector<std::string> stages = split(modules.front(), '|');
  modules.erase(modules.begin());
  check_mtp(modules, flag, has_experts);

  std::string letters = join(stages, "");
  hybrid.layers = static_cast<int64_t>(letters.size());
  if (stages.size() > 1)
    for (const std::string& stage : stages) hybrid.stages.push_back(static_cast<int64_t>(stage.size()));
  std::vector<bool> linear;
  for (char& letter : letters) {
    linear.push_back(letter == kGatedDeltaNet);
    if (letter == kGatedDeltaNet) letter = static_cast<char>(LayerMixer::kAttention);
  }
  hybrid.settings.push_back({"model.hybrid_layer_pattern", letters, flag});
  if (!modules.empty()) hybrid.settings.push_back({"mtp.num_layers", std::to_string(modules.size()), flag});
  if (std::ranges::find(linear, true) != linear.end()) {
    hybrid.settings.push_back({"linear_attention.type", "gated_delta_net", flag});
    hybrid.settings.push_back({"linear_attention.freq", layer_pattern_text(layer_pattern_of(linear)), flag});
  }
  return hybrid;
}

}  // namespace ranklab
