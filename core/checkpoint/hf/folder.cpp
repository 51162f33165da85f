#include "core/checkpoint/hf/folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

constexpr uint64_t kMostIndexBytes = 100'000'000;
constexpr uint64_t kMostConfigBytes = 1'000'000;
constexpr size_t kMostFiles = 10'000;
constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool is_plain_name(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  return name.ends_with(".safetensors") && name.size() <= 200 && name[0] != '.' && std::ranges::all_of(name, plain);
}

std::string read_inside(const std::string& path, uint64_t limit_bytes) {
  return read_whole_file(path, limit_bytes,
                         {.where = "Hugging Face", .fix = "check the path and its permissions", .follow_links = false});
}

}  // namespace

bool is_hf_folder(const std::string& folder) {
  // Nobody knows what is in a folder that may not be entered, so it is not reported as one of either kind.
  if (is_there(folder))
    require_folder(folder, "saved model", "a checkpoint, the folder of --save, or a Hugging Face folder");
  return is_there(folder + "/config.json");
}

HfFolder::HfFolder(const std::string& folder) : folder_(folder) {
  require_folder(folder_, "Hugging Face", "a folder with config.json and *.safetensors");
  const std::string index = folder_ + "/" + kIndex;
  if (is_there(folder_ + "/" + kOneFile)) {
    add_file(kOneFile);
  } else if (is_there(index)) {
    read_index(index);
  } else {
    for (const char* pickle : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
      if (is_there(folder_ + "/" + pickle))
        refuse_hf_feature(folder_, "its weights are pickles, which may run any code when they are read", pickle,
                          std::string(kOneFile) + ", or " + kIndex + " with its files");
    }
    throw Error(ErrorKind::kIo,
                {.where = "Hugging Face",
                 .what = quote(folder_) + " has no weights that ranklab reads",
                 .got = std::string("neither ") + kOneFile + " nor " + kIndex,
                 .want = "a folder that save_pretrained() or export-hf wrote (no .bin files: they are pickles)",
                 .fix = "check the path"});
  }
  std::ranges::sort(tensors_, {}, &TensorInfo::name);
}

std::vector<std::unique_ptr<SafetensorsFile>> HfFolder::take_files() && { return std::move(files_); }

std::string HfFolder::config_text() const { return read_inside(config_path(), kMostConfigBytes); }

std::string HfFolder::text_of(const char* name) const {
  const std::string path = folder_ + "/" + name;
  return is_there(path) ? read_inside(path, kMostConfigBytes) : "";
}

void HfFolder::add_file(const std::string& file) {
  files_.push_back(std::make_unique<SafetensorsFile>(folder_ + "/" + file));
  for (const TensorEntry& entry : files_.back()->tensors()) {
    if (!places_.emplace(entry.name, files_.back().get()).second)
      refuse_checkpoint_file(files_.back()->path(), "a tensor is in two files", quote(printable(entry.name)),
                             "each tensor once");
    tensors_.push_back({entry.name, entry.type, entry.shape});
  }
}

void HfFolder::read_index(const std::string& path) {
  const std::string text = read_inside(path, kMostIndexBytes);
  std::map<std::string, std::string> wanted;  // tensor -> file
  std::set<std::string> files;
  // Keeps nothing nested deeper than {"weight_map": {NAME: FILE}}.
  const auto shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) { return depth <= 3; };
  const auto json = nlohmann::json::parse(text, shallow, false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object())
    refuse_checkpoint_file(path, "this is not an index", "no \"weight_map\"", "{\"weight_map\": {TENSOR: FILE}}");
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get<std::string>()))
      refuse_checkpoint_file(path, "tensor " + quote(printable(tensor)) + " is in a file whose name is not plain",
                             printable(file.is_string() ? file.get<std::string>() : file.type_name()),
                             "letters, digits, - _ . and .safetensors at the end");
    wanted[tensor] = file.get<std::string>();
    files.insert(wanted[tensor]);
  }
  if (files.size() > kMostFiles)
    refuse_checkpoint_file(path, "too many files", std::to_string(files.size()), std::to_string(kMostFiles));
  for (const std::string& file : files) {
    if (!is_there(folder_ + "/" + file))
      refuse_checkpoint_file(path, "the index names a file that is not there", quote(file), "every file beside it");
    add_file(file);
  }
  for (const auto& [tensor, file] : wanted) {
    const auto place = places_.find(tensor);
    if (place == places_.end() || place->second->path() != folder_ + "/" + file)
      refuse_checkpoint_file(path, "the index names a tensor that its file lacks", quote(printable(tensor)), file);
  }
  for (const TensorInfo& tensor : tensors_) {
    if (!wanted.contains(tensor.name))
      refuse_checkpoint_file(path, "the index lacks a tensor of its files", quote(printable(tensor.name)),
                             "every tensor");
  }
}

std::vector<std::byte> HfFolder::read(const std::string& name) const {
  const TensorInfo& known = tensor(name);
  const SafetensorsFile& file = *places_.at(known.name);
  return file.read(file.tensor(known.name));
}

std::vector<std::byte> HfFolder::read_slice(const std::string& name, int64_t index) const {
  const TensorInfo& known = tensor(name);
  const SafetensorsFile& file = *places_.at(known.name);
  uint64_t bytes = 0;
  tensor_bytes({known.shape.begin() + 1, known.shape.end()}, known.type, bytes);
  std::vector<std::byte> slice(bytes);
  file.read(file.tensor(known.name), static_cast<uint64_t>(index) * bytes, slice);
  return slice;
}

}  // namespace ranklab
