// `ranklab ckpt reshard`: rewrites a checkpoint's files as the ranks of another layout would have written them. The
// model stays bit-identical. Every layout can load every checkpoint, so this is for users who read the files
// themselves, and for ranks that should each find what they need in one file.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/ckpt/ckpt_subcommands.h"
#include "cli/ckpt/ckpt_text.h"
#include "cli/ckpt/new_run_folder.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/pipeline_text.h"
#include "cli/config/config_options.h"
#include "cli/model/saved_model.h"
#include "cli/training_module.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/run_folder.h"
#include "core/comm/parallel_dims.h"
#include "core/runtime/checkpoint/settings.h"

namespace ranklab {
namespace {

struct Reshard {
  std::unique_ptr<ConfigOptions> options;
  std::string from, to;
  bool json = false;
};

// Saved settings that affect which rank owns what, or which layouts are possible; the layout itself comes from the
// flags alone. Precision settings are among them because a block of numbers that share a scale must lie on one rank, in
// each module that is quantized.
bool shapes_pieces(const std::string& key) {
  for (const char* one :
       {"train.params_dtype", "train.bf16", "precision.fp16", "precision.fp8", "precision.fp4", "precision.recipe",
        "precision.main_grads_dtype", "precision.block_size", "precision.include", "precision.exclude",
        "precision.compute_rules", "precision.compute_override", "optim.optimizer", "parallel.ddp_bucket_bytes"}) {
    if (key == one) return true;
  }
  return false;
}

using SavedSettings = std::map<std::string, std::string>;

const std::string kLengthKey = "model.seq_length";  // no tensor depends on it, so it may change with the layout
constexpr const char* kWorldKey = "parallel.world_size";

// Without this check, the tensors would not match the settings, and a sound checkpoint would look damaged.
void check_model_is_kept(const SavedSettings& saved, const ConfigOptions& options, const TrainConfig& config,
                         const std::string& origin) {
  const SavedSettings now = settings_of(config.model);
  for (const auto& [key, text] : saved)
    RANKLAB_CHECK(key == kLengthKey || now.at(key) == text, ErrorKind::kInvalidArgument,
                  .where = options.merged().origins.at(key), .what = "the model of a checkpoint stays as it is",
                  .got = key + " = " + now.at(key), .want = key + " = " + text + ", as in " + origin,
                  .fix = "leave " + key + " out");
}

// If the saved model does not fit the requested layout, the advice is to change the layout.
RunPlan resolved(const SavedSettings& saved, const ConfigOptions& options, const TrainConfig& config) {
  try {
    return options.resolve(config);
  } catch (const Error& error) {
    ErrorText text = error.text();
    const auto named = [&](const std::string& key) {
      const std::string& from = options.merged().origins.at(key);
      const std::string words = from.starts_with("flag ") ? from : key + " from " + from;
      return (", " + text.where + ",").find(", " + words + ",") != std::string::npos;
    };
    const bool of_model = std::ranges::any_of(
        saved, [&](const auto& setting) { return setting.first != kLengthKey && named(setting.first); });
    if (of_model && (named(kWorldKey) || std::ranges::any_of(kLayoutSizes, named)))
      text.fix = "choose another layout: the model of a checkpoint stays as it is";
    throw Error(error.kind(), text);
  }
}

// The saved settings, overridden by the user's flags. The batch size is not saved, so any that the layout divides is
// used. Its microbatches contain whole blocks of tokens that share a scale, however the ranks split them.
RunPlan plan_of(const Checkpoint& checkpoint, ConfigOptions& options) {
  const CheckpointManifest& manifest = checkpoint.manifest();
  const std::string origin = quote(checkpoint.folder());
  const SavedSettings saved = settings_of(model_of(manifest, checkpoint.folder()));
  for (const auto& [key, text] : saved) options.set(key, text, origin);
  for (const auto& [key, text] : manifest.config) {
    if (shapes_pieces(key)) options.set(key, text, origin);
  }
  TrainConfig config = options.config();
  check_model_is_kept(saved, options, config, origin);
  ParallelDims& dims = config.parallel;
  const bool world = options.given(kWorldKey);
  const bool sized = std::ranges::any_of(kLayoutSizes, [&](const char* size) { return options.given(size); });
  if (!world && !sized) dims = {.world = 1};
  if (!world && sized) dims.world = product_of_axes(dims);
  const int64_t split = std::max<int64_t>(1, int64_t{1} * dims.tp * dims.cp * dims.pp);
  config.micro_batch_size = 128;
  config.num_microbatches = 0;
  config.rampup_batch_size.clear();
  config.global_batch_size = config.micro_batch_size * std::max<int64_t>(1, int64_t{4} * dims.world / split * dims.pp);
  return resolved(saved, options, config);
}

class Resharder {
 public:
  Resharder(const Checkpoint& checkpoint, const RunPlan& plan) : checkpoint_(checkpoint), plan_(plan) {
    for (const auto& [name, tensor] : checkpoint.manifest().tensors) kinds_.insert(name.substr(0, name.find('/')));
    kinds_.erase("weight");
    kinds_.erase("buffer");
  }

  CheckpointManifest write(CheckpointWriter& writer) const {
    CheckpointManifest manifest = checkpoint_.manifest();
    manifest.files.clear();
    manifest.tensors.clear();
    manifest.layout = layout_sizes(plan_);
    // Keeps this program's settings only: another version may have had others.
    std::erase_if(manifest.config, [](const auto& setting) { return setting.first.starts_with("parallel."); });
    for (const auto& [key, text] : all_settings(plan_.config)) {
      if (key.starts_with("parallel.")) manifest.config[key] = text;
    }
    for (int rank = 0; rank < plan_.mesh.world_size(); ++rank) {
      const CheckpointManifest part = write_rank(writer, rank);
      merge_part(manifest, part, writer.temporary_folder());
    }
    check_complete(manifest);
    return manifest;
  }

 private:
  CheckpointManifest write_rank(CheckpointWriter& writer, int rank) const {
    std::vector<PieceToWrite> pieces;
    std::vector<std::vector<std::byte>> bytes;
    const auto add = [&](const std::string& name, const std::vector<int64_t>& shape, const TensorSlice& slice) {
      if (!checkpoint_.has(name)) return;  // imported weights have no moments
      const TensorType type = checkpoint_.tensor(name).type;
      bytes.emplace_back(static_cast<uint64_t>(slice.elements()) * size_bytes(type));
      checkpoint_.read(name, slice, bytes.back());
      pieces.push_back({.tensor = name, .type = type, .shape = shape, .slice = slice, .bytes = bytes.back()});
    };
    for (const NamedSlice& piece : training_functions().rank_pieces(plan_, rank)) {
      const std::string kind = piece.tensor.substr(0, piece.tensor.find('/'));
      if (kind == "buffer") add(piece.tensor, piece.shape, piece.slice);
      if (kind != "weight") continue;
      add(piece.tensor, piece.shape, piece.slice);
      for (const std::string& moment : kinds_) add(moment + piece.tensor.substr(kind.size()), piece.shape, piece.slice);
    }
    return writer.write_file(rank, pieces);
  }

  void check_complete(const CheckpointManifest& manifest) const {
    for (const auto& [name, tensor] : checkpoint_.manifest().tensors) {
      const auto found = manifest.tensors.find(name);
      if (found == manifest.tensors.end() || found->second.shape != tensor.shape)
        refuse_checkpoint_file(checkpoint_.folder(), "tensor " + quote(name) + " is not the model's",
                               shape_text(tensor.shape), "a tensor of the model of its settings");
    }
  }

  const Checkpoint& checkpoint_;
  const RunPlan& plan_;
  std::set<std::string> kinds_;  // kinds of moments
};

int run_reshard(Reshard& asked) {
  const Checkpoint checkpoint(checkpoint_named(asked.from));
  const RunPlan plan = plan_of(checkpoint, *asked.options);
  NewRunFolder out(asked.to, checkpoint.manifest().step);
  CheckpointManifest manifest = Resharder(checkpoint, plan).write(out.writer());
  out.writer().write_tokenizer(checkpoint.tokenizer(), manifest);
  const std::string folder = out.publish(manifest);
  uint64_t bytes = 0;
  for (const CheckpointFile& file : manifest.files) bytes += file.bytes;
  if (asked.json) {
    const nlohmann::ordered_json data = {{"checkpoint", folder},
                                         {"layout", manifest.layout},
                                         {"files", manifest.files.size()},
                                         {"tensors", manifest.tensors.size()},
                                         {"bytes", bytes}};
    std::fputs(json_result(data).c_str(), stdout);
    return 0;
  }
  std::printf("%s: %s\n", checkpoint.folder().c_str(), origin_text(checkpoint.manifest()).c_str());
  std::printf("%s: %s\n", folder.c_str(), origin_text(manifest).c_str());
  std::printf("  %s, %s\n", tensors_in_files(manifest).c_str(), human_bytes(static_cast<double>(bytes)).c_str());
  return 0;
}

}  // namespace

CkptSubcommand add_ckpt_reshard(CommandLine& app) {
  CommandLine* command = app.add_subcommand("reshard", "rewrite a checkpoint for another layout");
  auto asked = std::make_shared<Reshard>();
  command->add_option("CHECKPOINT", asked->from, "a checkpoint, or a folder of them: its newest")->required();
  command->add_option("OUT", asked->to, "the folder of checkpoints to make: new or empty")->required();
  command->add_flag("--json", asked->json, "print one JSON object");
  asked->options = std::make_unique<ConfigOptions>(*command);
  return {command, [asked] { return run_reshard(*asked); }};
}

}  // namespace ranklab
