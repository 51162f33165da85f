#include "core/checkpoint/hf/config.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/key.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/mxfp4.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rope.h"
#include "core/checkpoint/hf/text_part.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

// Keys that do not affect what the model computes.
const std::set<std::string> kWithoutMeaning = {"architectures",
                                               "model_type",
                                               "auto_map",
                                               "transformers_version",
                                               "torch_dtype",
                                               "dtype",
                                               "use_cache",
                                               "cache_implementation",
                                               "bos_token_id",
                                               "eos_token_id",
                                               "pad_token_id",
                                               "_name_or_path",
                                               "attention_dropout",
                                               "pretraining_tp",
                                               "output_router_logits",
                                               "router_jitter_noise",
                                               "router_aux_loss_coef",
                                               "ep_size",
                                               "task_specific_params",
                                               "n_ctx",
                                               "summary_activation",
                                               "summary_first_dropout",
                                               "summary_proj_to_labels",
                                               "summary_type",
                                               "summary_use_proj",
                                               "reorder_and_upcast_attn",
                                               "attn_pdrop",
                                               "return_dict",
                                               "output_hidden_states",
                                               "output_attentions",
                                               "chunk_size_feed_forward",
                                               "id2label",
                                               "label2id",
                                               "is_encoder_decoder",
                                               "is_decoder",
                                               "problem_type",
                                               "qk_head_dim",
                                               "rope_theta",
                                               "rope_scaling",
                                               "rope_parameters",
                                               "rope_interleave",
                                               "original_max_position_embeddings",
                                               "partial_rotary_factor",
                                               "quantization_config",
                                               "head_dim"};

// Keys that change what a model computes in some or all classes of transformers, with the values for which they change
// nothing, as does null. A family that reads one of them has a row for it.
const std::map<std::string, std::vector<HfJson>>& keys_with_meaning() {
  static const std::map<std::string, std::vector<HfJson>> kKeys = {{"is_causal", {true}},
                                                                   {"per_layer_config", {HfJson::object()}},
                                                                   {"attention_chunk_size", {}},
                                                                   {"sliding_window", {}},
                                                                   {"use_bidirectional_attention", {false}},
                                                                   {"no_rope_layers", {HfJson::array()}},
                                                                   {"alibi", {false}},
                                                                   {"clip_qkv", {}},
                                                                   {"use_qk_norm", {false}},
                                                                   {"qk_layernorm", {false}},
                                                                   {"attn_logit_softcapping", {}},
                                                                   {"final_logit_softcapping", {}},
                                                                   {"logit_scale", {1}},
                                                                   {"logits_scaling", {1}},
                                                                   {"embedding_multiplier", {1}},
                                                                   {"residual_multiplier", {1}},
                                                                   {"attention_multiplier", {}},
                                                                   {"scale_emb", {1}},
                                                                   {"scale_depth", {}}};
  return kKeys;
}

// Checks a key that the family does not read.
void require_without_meaning(ModelConfig& model, const HfValue& value, const std::string& key) {
  if (key == "layer_types") return same_layer_types_key().set(model, value);
  const auto found = keys_with_meaning().find(key);
  if (found == keys_with_meaning().end() || value.is_null()) return;
  const std::vector<HfJson>& neutral = found->second;
  if (std::ranges::find(neutral, value.json()) == neutral.end())
    value.refuse(neutral.empty() ? "null" : neutral[0].dump());
}

const char* torch_name(TensorType type) {
  switch (type) {
    case TensorType::kF64:
      return "float64";
    case TensorType::kBF16:
      return "bfloat16";
    case TensorType::kF16:
      return "float16";
    default:
      return "float32";
  }
}

HfValue value_of(const HfJson& file, const std::string& key, const std::string& path) {
  const auto found = file.find(key);
  return {found == file.end() ? HfJson() : *found, key, path};
}

// AutoModelForCausalLM uses "model_type", other readers use "architectures".
const HfFamily& family_of(const HfJson& file, const std::string& path) {
  const HfValue list = value_of(file, "architectures", path), type = value_of(file, "model_type", path);
  if (!list.is_null()) {
    if (!list.json().is_array() || list.json().size() != 1 || !list.json()[0].is_string())
      list.refuse_damaged("one name");
    const HfFamily& family = hf_family_named(list.json()[0].get<std::string>(), path);
    if (!type.is_null() && type.json() != family.model_type && type.json() != family.other_model_type)
      type.refuse(quote(family.model_type) + ", that of " + family.architecture);
    return family;
  }
  for (const HfFamily& family : hf_families()) {
    if (type.json() == family.model_type) return family;
  }
  if (!type.is_null()) {
    std::vector<std::string> types;
    for (const HfFamily& family : hf_families()) types.push_back(family.model_type);
    type.refuse("one of " + join(types, ", "));
  }
  refuse_checkpoint_file(path, "the file does not say which model this is", "no \"architectures\"",
                         "\"architectures\": [NAME]");
}

const HfJson* find_key(const HfKey& key, const HfJson& file, const std::string& path) {
  const auto found = file.find(key.key), other = key.other.empty() ? file.end() : file.find(key.other);
  if (found == file.end()) return other == file.end() ? nullptr : &*other;
  if (other != file.end() && *other != *found)
    HfValue(*other, key.other, path).refuse(found->dump() + ", the same as " + quote(key.key));
  return &*found;
}

void read_keys(HfConfig& config, const HfJson& file, const std::string& path) {
  std::set<std::string> known = kWithoutMeaning;
  for (const HfKey& key : config.family.keys) {
    known.insert({key.key, key.other});
    const HfJson* const found = find_key(key, file, path);
    if (found == nullptr && key.required)
      refuse_checkpoint_file(path, "a key is missing", quote(key.key),
                             "a config.json of " + config.family.architecture);
    key.set(config.model, HfValue(found == nullptr ? key.absent : *found, key.key, path));
  }
  for (const auto& [key, value] : file.items()) {
    if (known.contains(key)) continue;
    require_without_meaning(config.model, HfValue(value, key, path), key);
    if (key != "layer_types" && !keys_with_meaning().contains(key)) config.unknown_keys.push_back(printable(key));
  }
}

void check(const HfConfig& config, const std::string& path) {
  std::string computes;
  try {
    validate(config.model, 1, false);
    computes = hf_family(config.model).architecture;
  } catch (const Error& error) {
    refuse_hf_feature(path, "ranklab cannot represent this model: " + error.text().what, error.text().got,
                      error.text().want);
  }
  if (computes != config.family.architecture)
    refuse_hf_feature(path, "the settings are not those of " + config.family.architecture, "those of " + computes,
                      "settings of one family");
}

}  // namespace

std::string hf_config_json(const ModelConfig& config, const HfFamily& family, TensorType type) {
  HfJson file = {{"architectures", {family.architecture}}, {"model_type", family.model_type}};
  for (const HfKey& key : family.keys) {
    if (!key.get) continue;
    HfJson value = key.get(config);
    if (!value.is_discarded()) file[key.key] = std::move(value);
  }
  write_hf_rope(file, config, family.model);
  file["torch_dtype"] = torch_name(type);
  return file.dump(2) + "\n";
}

// Python writes numbers that JSON does not have, and some files contain them; Infinity and NaN are replaced by null.
std::string without_infinities(const std::string& text) {
  if (text.find("Infinity") == text.npos && text.find("NaN") == text.npos) return text;
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    const std::string_view rest = std::string_view(text).substr(i);
    const auto begins = [&](std::string_view word) { return !in_string && rest.starts_with(word); };
    const size_t skipped = begins("-Infinity") ? 9 : begins("Infinity") ? 8 : begins("NaN") ? 3 : 0;
    if (in_string && text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    out += skipped > 0 ? "null" : std::string(1, text[i]);
    if (skipped > 0) i += skipped - 1;
  }
  return out;
}

HfJson parse_hf_json(const std::string& text, const std::string& path) {
  constexpr int kDeepest = 8;
  std::vector<std::set<std::string>> seen;  // keys of the objects that are still open
  const auto bounded = [&](int depth, HfJson::parse_event_t event, HfJson& value) {
    if (depth > kDeepest) refuse_checkpoint_file(path, "the values are nested too deep", "more than 8 levels", "fewer");
    if (event == HfJson::parse_event_t::object_start) seen.emplace_back();
    if (event == HfJson::parse_event_t::object_end) seen.pop_back();
    // For duplicate keys JSON lets readers choose which one counts, and readers differ.
    if (event == HfJson::parse_event_t::key && !seen.back().insert(value.get<std::string>()).second)
      refuse_checkpoint_file(path, "a key appears twice", quote(printable(value.get<std::string>())), "each key once");
    return true;
  };
  HfJson file;
  try {
    file = HfJson::parse(without_infinities(text), bounded);
  } catch (const HfJson::exception& error) {
    refuse_checkpoint_file(path, "this is not JSON", printable(error.what(), 200), "JSON as transformers writes it");
  }
  if (!file.is_object()) refuse_checkpoint_file(path, "this is not a JSON object", file.type_name(), "an object");
  return file;
}

HfConfig read_hf_config(const std::string& text, const std::string& path) {
  auto [file, whole] = hf_text_part(parse_hf_json(text, path));
  HfConfig config{.whole = whole, .family = family_of(file, path)};
  if (!whole.empty())
    for (const auto& [key, value] : config.family.class_defaults.items())
      if (!file.contains(key)) file[key] = value;
  config.model = config.family.model;
  config.mxfp4 = is_hf_mxfp4(file, path);
  if (!config.mxfp4) config.fp8 = read_hf_fp8(file, path);
  read_keys(config, file, path);
  read_hf_rope(config.model, file, path);
  check(config, path);
  return config;
}

}  // namespace ranklab
