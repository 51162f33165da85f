#include "cli/ckpt/ckpt_hf_folder.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/ckpt/ckpt_text.h"
#include "cli/common/json_output.h"
#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/config.h"
#include "core/checkpoint/hf/folder.h"
#include "core/checkpoint/read_only_file.h"
#include "core/config/train_config.h"
#include "core/runtime/checkpoint/settings.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

constexpr const char* kBeside[] = {
    "generation_config.json", "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt",
    "chat_template.jinja"};

// What is known of the model; for one that ranklab cannot represent, the reason.
struct Described {
  std::string architecture;
  std::map<std::string, std::string> settings = {};
  std::string refusal = {};
};

std::string architectures_in(const HfFolder& folder) {
  const HfJson file = parse_hf_json(folder.config_text(), folder.config_path());
  const auto names = file.find("architectures"), type = file.find("model_type");
  std::vector<std::string> texts;
  if (names != file.end() && names->is_array())
    for (const HfJson& name : *names)
      if (name.is_string()) texts.push_back(printable(name.get<std::string>()));
  if (texts.empty() && type != file.end() && type->is_string()) texts.push_back(printable(type->get<std::string>()));
  return texts.empty() ? "a model of unknown class" : join(texts, ", ");
}

Described describe(const HfFolder& folder) {
  Described out{.architecture = architectures_in(folder)};
  try {
    TrainConfig config;
    config.model = read_hf_config(folder.config_text(), folder.config_path()).model;
    out.settings = model_settings(config);
  } catch (const Error& error) {
    out.refusal = error.text().what + "; got " + error.text().got;
  }
  return out;
}

std::string file_name(const SafetensorsFile& file) { return std::filesystem::path(file.path()).filename().string(); }

std::vector<std::string> files_beside(const std::string& folder) {
  std::vector<std::string> files;
  for (const char* name : kBeside)
    if (is_there(folder + "/" + name)) files.emplace_back(name);
  return files;
}

ordered_json json_of(const HfFolder& folder, const Described& model) {
  ordered_json tensors = ordered_json::array(), files = ordered_json::array();
  for (const TensorInfo& tensor : folder.tensors()) {
    const SafetensorsFile& file = folder.file_of(tensor.name);
    tensors.push_back({{"name", tensor.name},
                       {"dtype", name(tensor.type)},
                       {"shape", tensor.shape},
                       {"bytes", file.tensor(tensor.name).size_bytes()},
                       {"file", file_name(file)}});
  }
  for (const auto& file : folder.files()) files.push_back({{"name", file_name(*file)}, {"bytes", file->file_bytes()}});
  return {{"folder", folder.where()},
          {"architecture", model.architecture},
          {"model", model.refusal.empty() ? ordered_json(model.settings) : ordered_json(nullptr)},
          {"not_importable", model.refusal.empty() ? ordered_json(nullptr) : ordered_json(model.refusal)},
          {"beside", files_beside(folder.where())},
          {"files", files},
          {"tensors", tensors}};
}

void print_table(const HfFolder& folder) {
  std::vector<TensorLine> lines;
  for (const TensorInfo& tensor : folder.tensors()) {
    const SafetensorsFile& file = folder.file_of(tensor.name);
    lines.push_back({tensor.name, std::string(name(tensor.type)), shape_text(tensor.shape),
                     file.tensor(tensor.name).size_bytes(), file_name(file)});
  }
  std::printf("\n");
  print_tensors(lines, /*with_files=*/true);
}

}  // namespace

int inspect_hf_folder(const std::string& path, bool json) {
  const HfFolder folder(path);
  const Described model = describe(folder);
  if (json) {
    std::printf("%s", json_result(json_of(folder, model)).c_str());
    return 0;
  }
  uint64_t bytes = 0;
  for (const auto& file : folder.files()) bytes += file->file_bytes();
  std::printf("%s: a Hugging Face folder of %s, %s in %s, %s\n", path.c_str(), model.architecture.c_str(),
              counted(static_cast<int64_t>(folder.tensors().size()), "tensor").c_str(),
              counted(static_cast<int64_t>(folder.files().size()), "file").c_str(), both_sizes(bytes).c_str());
  if (!model.refusal.empty()) std::printf("ckpt import-hf rejects it: %s\n", model.refusal.c_str());
  const std::vector<std::string> beside = files_beside(path);
  if (!beside.empty()) std::printf("other files: %s\n", join(beside, ", ").c_str());
  print_settings("model", model.settings);
  print_table(folder);
  return 0;
}

}  // namespace ranklab
