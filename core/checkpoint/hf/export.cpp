#include "core/checkpoint/hf/export.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/folder_lock.h"
#include "core/base/text.h"
#include "core/checkpoint/element_convert.h"
#include "core/checkpoint/hf/config.h"
#include "core/checkpoint/hf/generation_config.h"
#include "core/checkpoint/hf/mapping.h"
#include "core/checkpoint/hf/tokenizer.h"
#include "core/checkpoint/hf/transform.h"
#include "core/checkpoint/tensor_files.h"
#include "core/spec/amax_history.h"

namespace ranklab {
namespace {

// Name of one file of a sharded model.
std::string shard_name(size_t index, size_t count) {
  if (count == 1) return "model.safetensors";
  return strprintf("model-%05zu-of-%05zu.safetensors", index + 1, count);
}

class Exporter {
 public:
  Exporter(const TensorSource& ours, const ModelConfig& config, const HfExportOptions& options)
      : ours_(ours), config_(config), options_(options), family_(hf_family(config)) {
    check_tensor_count(config, nullptr, ours.tensors().size(), ours.where());
    map_ = hf_mapping(config, family_);
    generation_ = generation_config_text(config);
    check_ours();
    for (const HfTensor& tensor : map_) {
      for (const HfPart& part : tensor.parts) {
        if (part.kind != HfPartKind::kTiedCopy) add(tensor, part);
      }
    }
  }

  HfExported write(const std::string& folder) {
    RANKLAB_CHECK(options_.tokenizer != HfTokenizer::kBytes || config_.vocab_size >= kByteTokens,
                  ErrorKind::kInvalidArgument, .where = "Hugging Face",
                  .what = "a tokenizer of bytes has tokens outside the model's vocabulary",
                  .got = "a vocabulary of " + std::to_string(config_.vocab_size), .want = "256 or more",
                  .fix = "leave --tokenizer bytes out");
    make_empty_folder(folder);
    const FolderLock lock(folder, "Hugging Face", "OUT");
    HfExported result{.architecture = family_.architecture, .tensors = theirs_.size()};
    try {
      write_files(folder, result);
    } catch (...) {  // what is left would not be a model, but would keep the next export out of the folder
      std::error_code ignored;
      for (const std::string& file : result.files) std::filesystem::remove(folder + "/" + file, ignored);
      std::filesystem::remove(folder, ignored);
      throw;
    }
    return result;
  }

 private:
  void write_files(const std::string& folder, HfExported& result) {
    const auto files = files_of_at_most(theirs_, options_.max_shard_bytes);
    nlohmann::ordered_json places = nlohmann::ordered_json::object();
    for (size_t i = 0; i < files.size(); ++i) {
      result.files.push_back(shard_name(i, files.size()));
      write_tensors(folder + "/" + result.files.back(), files[i], [this](const TensorInfo& t) { return bytes_of(t); },
                    {.metadata = {{"format", "pt"}}, .durable = options_.durable});
      for (const TensorInfo& tensor : files[i]) {
        places[tensor.name] = result.files.back();
        result.bytes += static_cast<uint64_t>(elements_of(tensor)) * size_bytes(tensor.type);
      }
    }
    if (files.size() > 1) {
      const nlohmann::ordered_json index = {{"metadata", {{"total_size", result.bytes}}}, {"weight_map", places}};
      write_text(folder, "model.safetensors.index.json", index.dump(2) + "\n", result);
    }
    if (options_.tokenizer == HfTokenizer::kAuto && !options_.own_tokenizer.empty()) {
      write_text(folder, "tokenizer.json", options_.own_tokenizer, result);
      write_text(folder, "tokenizer_config.json", exported_tokenizer_config(config_, options_.own_end_token), result);
    } else if (writes_bytes()) {
      write_text(folder, "tokenizer.json", hf_byte_tokenizer(), result);
      write_text(folder, "tokenizer_config.json", hf_tokenizer_config(config_.seq_length, ""), result);
    }
    if (!generation_.empty()) write_text(folder, kGenerationConfigName, generation_, result);
    write_text(folder, "config.json", hf_config_json(config_, family_, main_type_), result);
  }

  bool writes_bytes() const {
    if (options_.tokenizer == HfTokenizer::kAuto) return config_.vocab_size == kByteTokens;
    return options_.tokenizer == HfTokenizer::kBytes;
  }

  using Place = std::pair<const HfTensor*, const HfPart*>;

  static int64_t elements_of(const TensorInfo& tensor) {
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= size;
    return elements;
  }

  // On export, a router without a bias gets a zero bias.
  bool is_made_up(const HfTensor& tensor) const {
    return tensor.ours.starts_with("buffer/") && ours_.find(tensor.ours) == nullptr && !config_.moe.expert_bias;
  }

  // Excludes the optimizer's tensors and those of the recipe with which the model was trained.
  static bool is_of_the_model(const std::string& name) {
    return (name.starts_with("weight/") || name.starts_with("buffer/")) && !name.ends_with(kAmaxHistorySuffix);
  }

  void check_ours() const {
    std::set<std::string> known;
    for (const HfTensor& tensor : map_) {
      known.insert(tensor.ours);
      if (is_made_up(tensor)) continue;
      const TensorInfo& stored = ours_.tensor(tensor.ours);
      if (stored.shape != tensor.shape || !is_float_target(stored.type))
        refuse_checkpoint_file(ours_.where(), "tensor " + quote(tensor.ours) + " is not what the model has",
                               stored.describe(), "floats of shape " + shape_text(tensor.shape));
    }
    for (const TensorInfo& tensor : ours_.tensors()) {
      if (is_of_the_model(tensor.name) && !known.contains(tensor.name))
        refuse_checkpoint_file(ours_.where(), "the model has no such parameter", quote(tensor.name),
                               "the parameters of its settings");
    }
  }

  void add(const HfTensor& tensor, const HfPart& part) {
    const TensorType stored = is_made_up(tensor) ? TensorType::kF32 : ours_.tensor(tensor.ours).type;
    const bool asked = options_.type && !part.keeps_fp32;
    const TensorType type = asked ? *options_.type : options_.type ? TensorType::kF32 : stored;
    if (!part.keeps_fp32) see_type(type);
    std::vector<Place>& places = places_[part.name];
    if (places.empty()) {
      theirs_.push_back({part.name, type, part.shape});
    } else {
      widen(theirs_.back().type, type);  // a tensor of all experts, which come one after another
    }
    places.emplace_back(&tensor, &part);
  }

  // The element type of all weights. If they differ, it is a type that holds all their values, because a reader may
  // rely on the declared type.
  void see_type(TensorType type) {
    if (theirs_.empty()) main_type_ = type;
    widen(main_type_, type);
  }

  // Widens `type` so that it also holds the values of `other`.
  static void widen(TensorType& type, TensorType other) {
    if (type == other) return;
    const bool wide = type == TensorType::kF64 || other == TensorType::kF64;
    type = wide ? TensorType::kF64 : TensorType::kF32;
  }

  std::vector<std::byte> bytes_of(const TensorInfo& theirs) {
    std::vector<std::byte> all;
    for (const auto& [tensor, part] : places_.at(theirs.name)) {
      read_ours(*tensor);
      const auto bytes =
          convert_elements(held_type_, to_theirs(*part, held_, tensor->shape, size_bytes(held_type_)), theirs.type);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }

  // The parts of one of our tensors come consecutively.
  void read_ours(const HfTensor& tensor) {
    if (held_name_ == tensor.ours) return;
    held_name_ = tensor.ours;
    if (is_made_up(tensor)) {
      held_type_ = TensorType::kF32;
      held_.assign(static_cast<size_t>(tensor.shape[0]) * sizeof(float), std::byte{0});
      return;
    }
    held_type_ = ours_.tensor(tensor.ours).type;
    held_ = ours_.read(tensor.ours);
  }

  void write_text(const std::string& folder, const std::string& name, const std::string& text, HfExported& result) {
    write_file_atomically(folder + "/" + name, text,
                          {.where = "Hugging Face", .what = "cannot write the file", .fix = "check the folder"},
                          {.durable = options_.durable});
    result.files.push_back(name);
  }

  const TensorSource& ours_;
  const ModelConfig& config_;
  const HfExportOptions& options_;
  const HfFamily& family_;
  std::vector<HfTensor> map_;
  std::string generation_;  // "": there is no such file
  std::vector<TensorInfo> theirs_;
  std::map<std::string, std::vector<Place>> places_;  // several for experts, in their order
  TensorType main_type_ = TensorType::kF32;
  std::string held_name_;
  TensorType held_type_ = TensorType::kF32;
  std::vector<std::byte> held_;
};

}  // namespace

HfExported export_hf(const TensorSource& ours, const ModelConfig& config, const std::string& folder,
                     const HfExportOptions& options) {
  return Exporter(ours, config, options).write(folder);
}

}  // namespace ranklab
