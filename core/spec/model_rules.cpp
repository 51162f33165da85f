#include "core/spec/model_rules.h"

#include <array>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// Head settings that latent attention replaces with settings of its own.
std::string plain_heads(const ModelConfig& c) {
  std::vector<std::string> words;
  if (c.kv_channels > 0) words.push_back("--kv-channels " + std::to_string(c.kv_channels));
  if (c.query_groups() != c.num_attention_heads)
    words.push_back("--num-query-groups " + std::to_string(c.num_query_groups));
  if (c.rotary_percent != 1) words.push_back(strprintf("--rotary-percent %g", c.rotary_percent));
  if (c.qk_norm) words.emplace_back("--qk-layernorm");
  if (c.qk_l2_norm) words.emplace_back("--qk-l2-norm");
  if (c.attention_output_gate) words.emplace_back("--attention-output-gate");
  return join(words, ", ");
}

const std::array<ModelRule, 2>& rules() {
  static const std::array<ModelRule, 2> kRules = {{
      {.option = {.setting = {"model.kv_channels", "32"},
                  .chosen = [](const ModelConfig& c) { return !plain_heads(c).empty(); },
                  .shown = plain_heads},
       .excluded = {
           .setting = {"mla.kv_lora_rank", "16"},
           .chosen = [](const ModelConfig& c) { return c.mla.enabled(); },
           .shown = [](const ModelConfig& c) { return "--kv-lora-rank " + std::to_string(c.mla.kv_lora_rank); }},
       .why = "latent attention has its own head widths, keys for every head and norms of its latents; --kv-channels, "
              "--num-query-groups, --rotary-percent, norms of queries and keys and --attention-output-gate do not "
              "apply to it",
       .instead = "--qk-head-dim, --qk-pos-emb-head-dim and --v-head-dim"},
      {.option = {.setting = {"model.rope_scaling_type", "linear"},
                  .chosen = [](const ModelConfig& c) { return c.rope_scaling.enabled(); },
                  .shown = [](const ModelConfig& /*c*/) { return std::string("a --rope-scaling-type"); }},
       .excluded = {
           .setting = {"yarn.scaling_factor", "4"},
           .chosen = [](const ModelConfig& c) { return c.yarn.enabled(); },
           .shown =
               [](const ModelConfig& c) { return strprintf("--rotary-scaling-factor %g", c.yarn.scaling_factor); }},
       .why = "--rope-scaling-type and YaRN both scale the rotary frequencies",
       .instead = "--rope-scaling-type none, or --rotary-scaling-factor 1"},
  }};
  return kRules;
}

}  // namespace

std::span<const ModelRule> model_rules() { return rules(); }

void check_model_rules(const ModelConfig& config) {
  for (const ModelRule& rule : model_rules())
    RANKLAB_CHECK(!rule.option.chosen(config) || !rule.excluded.chosen(config), ErrorKind::kInvalidArgument,
                  .where = "model", .what = rule.why,
                  .got = rule.option.shown(config) + ", " + rule.excluded.shown(config), .want = rule.instead,
                  .fix = "leave one of them out (ranklab list combinations)");
}

}  // namespace ranklab
