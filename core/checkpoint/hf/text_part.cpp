#include "core/checkpoint/hf/text_part.h"

#include <algorithm>
#include <utility>

namespace ranklab {
namespace {

constexpr const char* kText[] = {"language_model.", "text_model."};

}  // namespace

HfTextPart hf_text_part(HfJson file) {
  const auto names = file.find("architectures"), text = file.find("text_config");
  const bool one = names != file.end() && names->is_array() && names->size() == 1 && names->front().is_string();
  if (!one || text == file.end() || !text->is_object()) return {std::move(file)};
  const auto whole = names->front().get<std::string>();
  if (!whole.ends_with("ForConditionalGeneration")) return {std::move(file)};
  HfJson config = *text;
  config.erase("architectures");  // "model_type" determines the class
  for (const char* key :
       {"dtype", "torch_dtype", "quantization_config", "bos_token_id", "eos_token_id", "pad_token_id"})
    if (file.contains(key) && (!config.contains(key) || config[key].is_null())) config[key] = file[key];
  // Whether the head is tied is decided by the class of the whole model.
  if (file.contains("tie_word_embeddings")) config["tie_word_embeddings"] = file["tie_word_embeddings"];
  return {std::move(config), whole};
}

std::vector<std::string> names_in_whole(const std::string& name) {
  constexpr std::string_view kModel = "model.";
  std::vector<std::string> names;
  for (const std::string prefix : kText) {
    names.push_back(prefix + name);
    if (name.starts_with(kModel)) names.push_back(std::string(kModel) + prefix + name.substr(kModel.size()));
  }
  return names;
}

bool is_of_text_part(const std::string& name) {
  return std::ranges::any_of(kText, [&](const char* prefix) { return name.find(prefix) != std::string::npos; });
}

}  // namespace ranklab
