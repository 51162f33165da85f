// `ranklab ckpt convert`: writes a checkpoint as one safetensors file of whole tensors, for any tool that reads the
// format, and back. Everything that is not a tensor (step, settings, layout, position in the data) is in the file's
// metadata.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ckpt/ckpt_options.h"
#include "cli/ckpt/ckpt_subcommands.h"
#include "cli/ckpt/write_checkpoint.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/model/saved_model.h"
#include "core/base/error.h"
#include "core/base/files/output_file.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/checkpoint/element_convert.h"
#include "core/checkpoint/run_folder.h"
#include "core/checkpoint/tensor_files.h"
#include "core/checkpoint/tensor_source.h"
#include "core/config/settings/fields.h"

namespace ranklab {
namespace {

constexpr const char* kManifestKey = "ranklab_manifest";
constexpr const char* kTokenizerKey = "ranklab_tokenizer";

struct ConvertOptions {
  std::string from, to, dtype;
  bool weights_only = false, force = false, json = false;
};

int report(const ConvertOptions& options, const std::string& path, size_t tensors, uint64_t bytes) {
  if (options.json) {
    std::fputs(json_result({{"path", path}, {"tensors", tensors}, {"bytes", bytes}}).c_str(), stdout);
  } else {
    std::printf("%s: %zu tensors, %s\n", path.c_str(), tensors, human_bytes(static_cast<double>(bytes)).c_str());
  }
  return 0;
}

int to_file(const ConvertOptions& options) {
  const std::optional<TensorType> type = parse_tensor_type(options.dtype);
  const Checkpoint checkpoint(checkpoint_named(options.from));
  check_output({.path = options.to,
                .option = "ckpt convert TO",
                .inputs = {options.from, checkpoint.folder()},
                .own = [&] { return SafetensorsFile(options.to).metadata().contains(kManifestKey); },
                .force = options.force});
  const CheckpointTensors source(checkpoint);
  std::vector<TensorInfo> tensors;
  for (TensorInfo tensor : source.tensors()) {
    const bool weight = tensor.name.starts_with("weight/"), buffer = tensor.name.starts_with("buffer/");
    if (options.weights_only && !weight && !buffer) continue;
    if (weight && type) tensor.type = *type;
    tensors.push_back(std::move(tensor));
  }
  CheckpointManifest about = checkpoint.manifest();
  about.files.clear();
  about.tensors.clear();
  const auto bytes_of = [&](const TensorInfo& tensor) {
    return convert_elements(source.tensor(tensor.name).type, source.read(tensor.name), tensor.type);
  };
  std::map<std::string, std::string> metadata = {{kManifestKey, manifest_text(about)}};
  if (!checkpoint.tokenizer().empty()) metadata[kTokenizerKey] = checkpoint.tokenizer();
  const WrittenSafetensors written = write_tensors(options.to, tensors, bytes_of, {.metadata = metadata});
  return report(options, options.to, tensors.size(), written.file_bytes);
}

// Reads the file's tensors in their own types: moments, and weights of --main-params-dtype, may have 16 bits.
class FileTensors : public TensorSource {
 public:
  explicit FileTensors(const SafetensorsFile& file) : file_(file) {
    for (const TensorEntry& entry : file.tensors()) tensors_.push_back({entry.name, entry.type, entry.shape});
  }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  std::vector<std::byte> read(const std::string& name) const override { return file_.read(file_.tensor(name)); }
  std::string where() const override { return file_.path(); }

 private:
  const SafetensorsFile& file_;
  std::vector<TensorInfo> tensors_;
};

int to_folder(const ConvertOptions& options) {
  RANKLAB_CHECK(options.dtype.empty() && !options.weights_only, ErrorKind::kInvalidArgument, .where = "ckpt convert",
                .what = "a file is converted to a checkpoint unchanged", .got = "--dtype or --weights-only",
                .want = "neither", .fix = "give them when the file is written");
  const SafetensorsFile file(options.from);
  const auto about = file.metadata().find(kManifestKey);
  if (about == file.metadata().end())
    refuse_checkpoint_file(options.from, "the file does not say which model it belongs to",
                           std::string("no metadata ") + kManifestKey, "a file that ckpt convert wrote");
  CheckpointManifest manifest = parse_manifest(about->second, options.from);
  manifest.layout = {{"world", 1}, {"tp", 1},  {"pp", 1},  {"dp", 1},
                     {"ep", 1},    {"etp", 1}, {"edp", 1}, {"zero_stage", 0}};
  const ModelConfig model = model_of(manifest, options.from);
  const auto tokenizer = file.metadata().find(kTokenizerKey);
  const WrittenCheckpoint written = write_checkpoint(FileTensors(file), manifest, model, options.to,
                                                     tokenizer == file.metadata().end() ? "" : tokenizer->second);
  return report(options, written.folder, written.tensors, written.bytes);
}

int run_convert(const ConvertOptions& options) {
  const bool is_file = !is_folder(options.from);
  return is_file ? to_folder(options) : to_file(options);
}

}  // namespace

CkptSubcommand add_ckpt_convert(CommandLine& app) {
  CommandLine* command =
      app.add_subcommand("convert", "convert a checkpoint into one safetensors file of whole tensors, or back");
  auto options = std::make_shared<ConvertOptions>();
  command->add_option("FROM", options->from, "a checkpoint, or a file that convert wrote")->required();
  command->add_option("TO", options->to, "the .safetensors file, or the folder of checkpoints to make")->required();
  command->add_option("--dtype", options->dtype, "type of the weights: fp32, bf16, fp16 or fp64 (default: as stored)");
  command->add_flag("--weights-only", options->weights_only, "leave out the optimizer states");
  command->add_flag("--force", options->force, "overwrite a file that convert did not write");
  command->add_flag("--json", options->json, "print one JSON object");
  return {command, [options] { return run_convert(*options); }};
}

}  // namespace ranklab
