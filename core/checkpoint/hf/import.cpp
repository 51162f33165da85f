#include "core/checkpoint/hf/import.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/element_convert.h"
#include "core/checkpoint/hf/generation_config.h"
#include "core/checkpoint/hf/mxfp4.h"
#include "core/checkpoint/hf/rules.h"
#include "core/checkpoint/hf/text_part.h"
#include "core/checkpoint/hf/tokenizer.h"
#include "core/checkpoint/hf/transform.h"

namespace ranklab {
namespace {

// Tables that old versions wrote next to the weights; they are recomputed.
bool is_table(const std::string& name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.bias") ||
         name.ends_with(".attn.masked_bias") || name.ends_with(".attention.bias") ||
         name.ends_with(".attention.masked_bias");
}

// "a, b, c and 4 more"
std::string some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  const std::string text = join(first, ", ");
  return names.size() <= kShown ? text : text + " and " + std::to_string(names.size() - kShown) + " more";
}

}  // namespace

HfModel::HfModel(const std::string& folder)
    : folder_(folder), config_(read_hf_config(folder_.config_text(), folder_.config_path())) {
  if (!config_.unknown_keys.empty())
    notes_.push_back("unknown keys of config.json, ignored: " + join(config_.unknown_keys, ", "));
  if (const std::string text = folder_.text_of(kGenerationConfigName); !text.empty())
    config_.model.hf_generation_config = kept_generation_config(text, folder_.where() + "/" + kGenerationConfigName);
  config_.model.hf_tokenizer_config = kept_tokenizer_config(folder_);
  see_through_quantization();
  drop_absent_modules();
  check_tensor_count(config_.model, &config_.family, theirs().tensors().size(), folder_.config_path());
  choose_names();
  std::ranges::sort(map_, {}, &HfTensor::ours);
  check_tensors();
}

const TensorSource& HfModel::theirs() const { return dequantized_ ? *dequantized_ : folder_; }

void HfModel::see_through_quantization() {
  if (config_.mxfp4) {
    auto seen = std::make_unique<HfMxfp4>(folder_);
    notes_.push_back(strprintf("%zu tensors of experts are MXFP4: read as bf16, which holds their values exactly",
                               seen->quantized()));
    dequantized_ = std::move(seen);
  }
  if (!config_.fp8) return;
  auto seen = std::make_unique<HfDequantized>(folder_, *config_.fp8);
  notes_.push_back(
      strprintf("%zu matrices are FP8 in blocks of %lld x %lld: read as value times scale, and activations "
                "are not quantized here",
                seen->matrices(), static_cast<long long>(config_.fp8->block_rows),
                static_cast<long long>(config_.fp8->block_columns)));
  dequantized_ = std::move(seen);
}

// Configurations mention MTP modules even for models without them, because the classes of transformers do.
void HfModel::drop_absent_modules() {
  ModelConfig& model = config_.model;
  if (model.mtp_num_layers == 0) return;
  const std::string prefix = config_.family.layer_prefix + std::to_string(model.num_layers) + ".";
  const auto has = [&](const TensorInfo& tensor) { return tensor.name.starts_with(prefix); };
  if (std::ranges::any_of(theirs().tensors(), has)) return;
  notes_.push_back("the folder has no tensors of its num_nextn_predict_layers: imported without them");
  model.mtp_num_layers = 0;
}

// In files of only the base model, names lack their prefix.
std::string HfModel::their_name(const HfPart& part) const {
  if (theirs().find(part.name) != nullptr) return part.name;
  if (!config_.whole.empty()) {
    for (const std::string& name : names_in_whole(part.name))
      if (theirs().find(name) != nullptr) return name;
  }
  const size_t dot = part.name.find('.');
  const std::string bare = part.name.substr(dot + 1);
  const bool in_base =
      part.name.starts_with("transformer.") || part.name.starts_with("model.") || part.name.starts_with("gpt_neox.");
  return in_base && theirs().find(bare) != nullptr ? bare : part.name;
}

void HfModel::choose_names() {
  map_ = hf_mapping(config_.model, config_.family);
  if (config_.family.other_layer_rules.empty()) return;
  HfFamily other = config_.family;
  other.layer_rules = together({other.other_layer_rules, other.layer_rules});
  std::vector<HfTensor> others = hf_mapping(config_.model, other);
  const auto found = [this](const std::vector<HfTensor>& map) {
    size_t count = 0;
    for (const HfTensor& tensor : map)
      count += static_cast<size_t>(std::ranges::count_if(
          tensor.parts, [this](const HfPart& part) { return theirs().find(their_name(part)) != nullptr; }));
    return count;
  };
  if (found(others) > found(map_)) map_ = std::move(others);
}

void HfModel::check_tensors() {
  std::vector<std::string> missing, left_over;
  std::set<std::string> known;
  bool has_fp64 = false;
  for (const HfTensor& tensor : map_) {
    for (const HfPart& part : tensor.parts) {
      const std::string name = their_name(part);
      known.insert(name);
      const TensorInfo* found = theirs().find(name);
      if (found == nullptr) {
        if (part.kind == HfPartKind::kTensor) missing.push_back(part.name);
        continue;
      }
      if (found->shape != part.shape || !is_float_target(found->type))
        refuse_checkpoint_file(where(), "tensor " + quote(name) + " is not what config.json says", found->describe(),
                               "F32, F64, BF16 or F16 of shape " + shape_text(part.shape));
      if (!part.keeps_fp32) has_fp64 |= found->type == TensorType::kF64;
    }
  }
  size_t beside = 0, unread = 0;
  const std::string& passed_over = config_.family.passed_over;
  for (const TensorInfo& tensor : theirs().tensors()) {
    if (known.contains(tensor.name) || is_table(tensor.name)) continue;
    if (!passed_over.empty() && tensor.name.starts_with(passed_over)) {
      ++unread;
    } else if (config_.whole.empty() || is_of_text_part(tensor.name)) {
      left_over.push_back(printable(tensor.name));
    } else {
      ++beside;
    }
  }
  if (!config_.whole.empty())
    notes_.push_back(
        strprintf("the text model of %s: %zu tensors beside it are ignored", printable(config_.whole).c_str(), beside));
  if (unread > 0)
    notes_.push_back(
        strprintf("%zu tensors %s* are ignored, as in %s", unread, passed_over.c_str(), architecture().c_str()));
  if (!missing.empty())
    refuse_checkpoint_file(where(), "tensors of " + architecture() + " are missing", some(missing), "all of them");
  if (!left_over.empty())
    refuse_checkpoint_file(where(), "tensors that " + architecture() + " of this config.json does not have",
                           some(left_over), "none of them");
  for (const HfTensor& tensor : map_) {
    tensors_.push_back({tensor.ours, has_fp64 ? TensorType::kF64 : common_type(tensor), tensor.shape});
    if (tensor.ours == "weight/embedding.weight") type_ = tensors_.back().type;
  }
}

TensorType HfModel::common_type(const HfTensor& tensor) const {
  const TensorType first = theirs().tensor(their_name(tensor.parts[0])).type;
  const auto other = [&](const HfPart& part) {
    return part.kind == HfPartKind::kTensor && theirs().tensor(their_name(part)).type != first;
  };
  return std::ranges::any_of(tensor.parts, other) ? TensorType::kF32 : first;
}

std::vector<std::byte> HfModel::read_part(const HfPart& part, TensorType type) const {
  const TensorInfo& stored = theirs().tensor(their_name(part));
  const auto bytes = part.slice < 0 ? theirs().read(stored.name) : theirs().read_slice(stored.name, part.slice);
  return convert_elements(stored.type, bytes, type);
}

void HfModel::check_copy(const HfTensor& tensor, const HfPart& part, const TensorInfo& info,
                         const std::vector<std::byte>& ours) const {
  if (theirs().find(their_name(part)) == nullptr || read_part(part, info.type) == ours) return;
  const std::string what = "tensor " + quote(part.name) + " is not the same as " + quote(tensor.parts[0].name);
  refuse_checkpoint_file(where(), what, "other values", "a copy of it: ranklab shares the two");
}

std::vector<std::byte> HfModel::read(const std::string& name) const {
  const TensorInfo& info = tensor(name);
  const auto found = std::ranges::lower_bound(map_, name, {}, &HfTensor::ours);
  uint64_t bytes = 0;
  tensor_bytes(info.shape, info.type, bytes);
  std::vector<std::byte> ours(bytes);
  for (const HfPart& part : found->parts) {
    if (part.kind == HfPartKind::kTensor) {
      to_ours(part, read_part(part, info.type), ours, found->shape, size_bytes(info.type));
    } else {
      check_copy(*found, part, info, ours);
    }
  }
  return ours;
}

}  // namespace ranklab
