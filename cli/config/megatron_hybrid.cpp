#include "cli/config/megatron_hybrid.h"

#include "cli/config/megatron_words.h"
#include "core/spec/layer_pattern.h"
#include "core/spec/megatron_pattern.h"

namespace ranklab {

MegatronHybrid read_megatron_hybrid(const std::string& text, const std::string& flag, bool has_experts) {
  const MegatronPattern pattern = parse_megatron_pattern(text);
  const std::string other = other_mtp_module(pattern, has_experts), own = own_mtp_module(has_experts);
  if (!other.empty())
    refuse_megatron(flag + " has MTP modules of other layers than ranklab's", "/" + other,
                    "/" + own + " for each module", "leave them out, or write /" + own);
  MegatronHybrid hybrid{.layers = pattern.layers(), .stages = pattern.stages};
  hybrid.settings.push_back({"model.hybrid_layer_pattern", pattern.mixers, flag});
  if (!pattern.mtp_modules.empty())
    hybrid.settings.push_back({"mtp.num_layers", std::to_string(pattern.mtp_modules.size()), flag});
  if (pattern.has_linear()) {
    hybrid.settings.push_back({"linear_attention.type", "gated_delta_net", flag});
    hybrid.settings.push_back({"linear_attention.freq", layer_pattern_text(layer_pattern_of(pattern.linear)), flag});
  }
  return hybrid;
}

}  // namespace ranklab
