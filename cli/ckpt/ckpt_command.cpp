// `ranklab ckpt inspect | verify | diff`: shows the contents of checkpoints and safetensors files, whether they are
// intact, and where two of them differ.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ckpt/ckpt_folder.h"
#include "cli/ckpt/ckpt_hf_folder.h"
#include "cli/ckpt/ckpt_subcommands.h"
#include "cli/ckpt/ckpt_tensor_files.h"
#include "cli/ckpt/ckpt_text.h"
#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/folder.h"
#include "core/checkpoint/safetensors.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

struct CkptOptions {
  std::string file, other;
  bool json = false;
};

ordered_json json_of(const SafetensorsFile& file) {
  ordered_json tensors = ordered_json::array(), checksums;
  for (const TensorEntry& tensor : file.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", name(tensor.type)},
                       {"shape", tensor.shape},
                       {"bytes", tensor.size_bytes()},
                       {"offset", tensor.begin}});
  }
  if (file.checksums()) {
    checksums = {{"algorithm", "xxh3"},
                 {"chunk_bytes", file.checksums()->chunk_bytes},
                 {"header", xxh3_text(file.checksums()->header)}};
  }
  return {{"file", file.path()},
          {"bytes", file.file_bytes()},
          {"tensors", tensors},
          {"metadata", file.metadata()},
          {"checksums", checksums}};
}

void print_table(const SafetensorsFile& file) {
  std::vector<TensorLine> lines;
  for (const TensorEntry& tensor : file.tensors())
    lines.push_back({tensor.name, std::string(name(tensor.type)), shape_text(tensor.shape), tensor.size_bytes()});
  print_tensors(lines);
}

int inspect(const CkptOptions& options) {
  if (is_folder(options.file) && is_hf_folder(options.file)) return inspect_hf_folder(options.file, options.json);
  if (is_folder(options.file)) return inspect_checkpoint(options.file, options.json);
  const SafetensorsFile file(options.file);
  if (options.json) {
    std::printf("%s", json_result(json_of(file)).c_str());
    return 0;
  }
  std::printf("%s: %zu tensors, %s\n", file.path().c_str(), file.tensors().size(),
              both_sizes(file.file_bytes()).c_str());
  if (file.checksums()) {
    std::printf("checksums: xxh3 of every %s, %s for the whole\n", both_sizes(file.checksums()->chunk_bytes).c_str(),
                xxh3_text(file.checksums()->header).c_str());
  } else {
    std::printf("checksums: none\n");
  }
  for (const auto& [key, value] : file.metadata())
    std::printf("metadata: %s = %s\n", metadata_text(key).c_str(), metadata_text(value).c_str());
  std::printf("\n");
  print_table(file);
  return 0;
}

bool is_checkpoint(const std::string& path) { return is_folder(path) && !is_hf_folder(path); }

int verify(const CkptOptions& options) {
  return is_checkpoint(options.file) ? verify_checkpoint(options.file, options.json)
                                     : verify_tensor_files(options.file, options.json);
}

// A checkpoint stores tensors in pieces, under names other than those in a file or a Hugging Face folder.
void refuse_mixed(const CkptOptions& options) {
  const bool first = is_checkpoint(options.file);
  const std::string &checkpoint = first ? options.file : options.other, &other = first ? options.other : options.file;
  open_tensor_files(other);  // reports damage of the files themselves first
  const bool folder = is_folder(other);
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "ckpt diff",
               .what = folder ? "a checkpoint is not compared with a Hugging Face folder"
                              : "a folder is not compared with a file",
               .got = quote(checkpoint) + " and " + quote(other),
               .want = "two checkpoints, or two of safetensors files and Hugging Face folders",
               .fix = folder ? "bring the checkpoint's weights to that form: ranklab ckpt export-hf " +
                                   shell_path(checkpoint) + " FOLDER"
                             : "make a file of the checkpoint: ranklab ckpt convert " + shell_path(checkpoint) +
                                   " FILE.safetensors"});
}

int diff(const CkptOptions& options) {
  const bool checkpoint = is_checkpoint(options.file);
  if (checkpoint != is_checkpoint(options.other)) refuse_mixed(options);
  return checkpoint ? diff_checkpoint_folders(options.file, options.other, options.json)
                    : diff_tensor_files(options.file, options.other, options.json);
}

}  // namespace

CommandAction setup_ckpt(CommandLine& app) {
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab ckpt inspect runs/ckpt\n  ranklab ckpt verify model.safetensors\n"
      "  ranklab ckpt diff before.safetensors after.safetensors\n"
      "  ranklab ckpt reshard runs/ckpt runs/tp2 --tp 2 --dp 2\n"
      "  ranklab ckpt export-hf runs/ckpt runs/hf --dtype bf16\n  ranklab ckpt import-hf runs/hf runs/from_hf");
  constexpr const char* kWhat =
      "a checkpoint, the folder of --save (its newest one), a Hugging Face folder, or a safetensors file";
  auto options = std::make_shared<CkptOptions>();
  CommandLine* show = app.add_subcommand(
      "inspect", "print the tensors and settings of a checkpoint, a Hugging Face folder, or a safetensors file");
  show->add_option("FILE", options->file, kWhat)->required();
  CommandLine* prove = app.add_subcommand(
      "verify",
      "verify the structure and every checksum of a checkpoint, a Hugging Face folder, or a safetensors file");
  prove->add_option("FILE", options->file, kWhat)->required();
  CommandLine* compare = app.add_subcommand(
      "diff", "compare two checkpoints (of any layouts), Hugging Face folders or files; exit code 4 if they differ");
  compare->add_option("A", options->file, kWhat)->required();
  compare->add_option("B", options->other, "the one to compare it with")->required();
  for (CommandLine* command : {show, prove, compare})
    command->add_flag("--json", options->json, "print one JSON object");
  const std::vector<CkptSubcommand> writers = {add_ckpt_convert(app), add_ckpt_reshard(app), add_ckpt_export(app),
                                               add_ckpt_import(app)};
  return [&app, options, show, prove, compare, writers] {
    for (const CkptSubcommand& writer : writers) {
      if (writer.app->parsed()) return writer.action();
    }
    if (show->parsed()) return inspect(*options);
    if (prove->parsed()) return verify(*options);
    if (compare->parsed()) return diff(*options);
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
