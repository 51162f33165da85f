#include "cli/ckpt/write_checkpoint.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/ckpt/new_run_folder.h"
#include "cli/model/saved_model.h"
#include "core/base/files/atomic_file.h"
#include "core/base/toml/toml_string.h"
#include "core/checkpoint/tensor_files.h"
#include "core/config/settings/fields.h"

namespace ranklab {
namespace {

// Writes only the settings of the model; the user chooses the others.
std::string model_toml(const ModelConfig& model, bool fp64) {
  std::string text, table;
  const auto settings = settings_of(model);
  for (const ConfigField& field : config_fields()) {
    const auto setting = settings.find(field.key);
    if (setting == settings.end()) continue;
    const size_t dot = field.key.find('.');
    if (table != field.key.substr(0, dot)) text += "[" + (table = field.key.substr(0, dot)) + "]\n";
    const bool quoted = field.type == ConfigField::Type::kText;
    text += field.key.substr(dot + 1) + " = " + (quoted ? toml_string(setting->second) : setting->second) + "\n";
  }
  return fp64 ? text + "[train]\nparams_dtype = \"fp64\"\n" : text;
}

bool has_fp64(const TensorSource& source) {
  return std::ranges::any_of(source.tensors(), [](const TensorInfo& t) { return t.type == TensorType::kF64; });
}

constexpr uint64_t kFileBytes = uint64_t{2} << 30;  // also held in memory at once

CheckpointManifest write_file(CheckpointWriter& writer, int file, const TensorSource& source,
                              const std::vector<TensorInfo>& tensors, uint64_t& written_bytes) {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<PieceToWrite> pieces;
  for (const TensorInfo& tensor : tensors) {
    bytes.push_back(source.read(tensor.name));
    written_bytes += bytes.back().size();
    pieces.push_back({.tensor = tensor.name,
                      .type = tensor.type,
                      .shape = tensor.shape,
                      .slice = whole_slice(tensor.shape),
                      .bytes = bytes.back()});
  }
  return writer.write_file(file, pieces);
}

}  // namespace

WrittenCheckpoint write_checkpoint(const TensorSource& source, CheckpointManifest manifest, const ModelConfig& model,
                                   const std::string& run_folder, const std::string& tokenizer) {
  NewRunFolder out(run_folder, manifest.step);
  WrittenCheckpoint written{.settings = run_folder + "/model.toml", .tensors = source.tensors().size()};
  int file = 0;
  for (const std::vector<TensorInfo>& tensors : files_of_at_most(source.tensors(), kFileBytes))
    merge_part(manifest, write_file(out.writer(), file++, source, tensors, written.bytes), run_folder);
  out.writer().write_tokenizer(tokenizer, manifest);
  written.folder = out.publish(manifest);
  write_file_atomically(written.settings, model_toml(model, has_fp64(source)),
                        {.where = "checkpoint", .what = "cannot write the settings", .fix = "check the folder"});
  return written;
}

WrittenCheckpoint write_imported(const TensorSource& source, const ModelConfig& model, const std::string& run_folder,
                                 const std::string& tokenizer) {
  return write_checkpoint(source, {.model = settings_of(model)}, model, run_folder, tokenizer);
}

}  // namespace ranklab
