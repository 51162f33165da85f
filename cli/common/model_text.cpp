#include "cli/common/model_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/spec/presets.h"

namespace ranklab {

std::string model_name(const TrainConfig& c) {
  const auto preset = std::ranges::find(model_presets(), c.preset, &ModelPreset::name);
  if (preset == model_presets().end()) return c.preset;
  const ModelConfig &was = preset->config, &is = c.model;
  if (was.num_layers != is.num_layers && was.hidden_size != is.hidden_size && was.ffn_hidden_size != is.ffn_hidden_size)
    return "custom model";
  return c.preset + (was.parameter_count() != is.parameter_count() ? ", changed" : "");
}

std::string counts_text(const ModelCounts& counts) {
  const auto text = [](int64_t count) { return human_count(static_cast<double>(count)); };
  std::string out = text(counts.total) + " parameters";
  if (counts.active < counts.total) {
    out += ", " + text(counts.active) + " active";
    if (counts.embedding > 0) out += " (" + text(counts.active - counts.embedding) + " without the embedding)";
  }
  return counts.mtp > 0 ? out + ", MTP " + text(counts.mtp) : out;
}

std::string parts_text(const ModelConfig& model) {
  std::vector<std::pair<std::string, int64_t>> parts;
  for (const ModuleRow& row : module_table(model)) {
    const std::string part = row.mtp ? "MTP" : name(row.part);
    const auto same = [&](const auto& seen) { return seen.first == part; };
    const auto found = std::find_if(parts.begin(), parts.end(), same);
    if (found == parts.end()) {
      parts.emplace_back(part, row.parameters());
    } else {
      found->second += row.parameters();
    }
  }
  std::vector<std::string> words;
  for (const auto& [part, count] : parts)
    if (count > 0) words.push_back(part + " " + human_count(static_cast<double>(count)));
  return join(words, ", ");
}

std::string cache_text(const RunPlan& plan) {
  const ModelConfig& m = plan.config.model;
  const auto bytes = [&](int64_t elements) {
    return human_bytes(static_cast<double>(elements * plan.config.element_bytes()));
  };
  std::string text =
      bytes(kv_cache_elements_per_token(m)) + " a token in " + std::string(name(plan.config.element_dtype()));
  if (m.remembers())
    text +=
        strprintf(" in %ld of %ld layers, and %s a sequence in %ld others", static_cast<long>(m.softmax_layer_count()),
                  static_cast<long>(m.num_layers), human_bytes(remembered_bytes(plan)).c_str(),
                  static_cast<long>(m.linear_layer_count() + m.mamba_layer_count()));
  if (!m.mla.enabled()) return text;
  const int64_t whole = m.softmax_layer_count() * m.num_attention_heads * (m.mla.query_head_dim() + m.mla.v_head_dim);
  return text + ": latent attention keeps one vector of " +
         std::to_string(m.mla.kv_lora_rank + m.mla.qk_pos_emb_head_dim) +
         " a layer; keys and values of all heads are " + bytes(whole);
}

double remembered_bytes(const RunPlan& plan) {
  const ModelConfig& m = plan.config.model;
  const int64_t element = plan.config.element_bytes(), matrix = std::max<int64_t>(element, 4);
  return static_cast<double>(m.remembered_elements() * matrix + m.remembered_inputs() * element);
}

int64_t kv_cache_bytes_per_token(const RunPlan& plan) {
  return kv_cache_elements_per_token(plan.config.model) * plan.config.element_bytes();
}

}  // namespace ranklab
