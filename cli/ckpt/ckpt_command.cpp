// `ranklab ckpt inspect | verify | diff`: shows the contents of checkpoints and safetensors files, whether they are
// intact, and where two of them differ.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ckpt/ckpt_folder.h"
#include "cli/ckpt/ckpt_hf_folder.h"
#include "cli/ckpt/ckpt_subcommands.h"
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
#include "core/checkpoint/tensor_diff.h"

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

int verify(const CkptOptions& options) {
  if (is_folder(options.file)) return verify_checkpoint(options.file, options.json);
  const SafetensorsFile file(options.file);
  const std::vector<DamagedChunk> damaged = file.damaged_chunks();
  for (const DamagedChunk& chunk : damaged) {
    if (options.json) break;  // stdout holds the error object
    std::printf("damaged: tensor %s, bytes %llu to %llu, file offset %llu\n", quote(chunk.tensor).c_str(),
                static_cast<LongUnsigned>(chunk.begin), static_cast<LongUnsigned>(chunk.end),
                static_cast<LongUnsigned>(chunk.file_offset));
  }
  if (!damaged.empty()) file.verify();  // throws, naming the first damaged tensor
  if (options.json) {
    std::printf("%s", json_result({{"file", file.path()},
                                   {"bytes", file.file_bytes()},
                                   {"tensors", file.tensors().size()},
                                   {"checksums", file.checksums().has_value()}})
                          .c_str());
    return 0;
  }
  std::printf("%s: sound, %zu tensors, %s; %s\n", file.path().c_str(), file.tensors().size(),
              both_sizes(file.file_bytes()).c_str(),
              file.checksums() ? "every checksum holds"
                               : "it has no checksums, so a flipped bit in a tensor would not be seen");
  return 0;
}

ordered_json json_of(const SafetensorsDifference& diff) {
  ordered_json tensors = ordered_json::array();
  for (const TensorDifference& d : diff.tensors) tensors.push_back(difference_json(d));
  return {{"same", diff.tensors.empty()},
          {"same_tensors", diff.same_tensors},
          {"different", tensors},
          {"metadata", diff.metadata}};
}

// A checkpoint stores tensors in pieces, under names other than those in a file of whole tensors.
void refuse_mixed(const CkptOptions& options) {
  const bool first = is_folder(options.file);
  const std::string &folder = first ? options.file : options.other, &file = first ? options.other : options.file;
  const SafetensorsFile sound(file);  // reports damage of the file itself first
  throw Error(ErrorKind::kInvalidArgument, {.where = "ckpt diff",
                                            .what = "a folder is not compared with a file",
                                            .got = quote(folder) + " and " + quote(file),
                                            .want = "two checkpoints, or two safetensors files",
                                            .fix = "make a file of the checkpoint: ranklab ckpt convert " +
                                                   shell_path(folder) + " FILE.safetensors"});
}

int diff(const CkptOptions& options) {
  if (is_folder(options.file) != is_folder(options.other)) refuse_mixed(options);
  if (is_folder(options.file)) return diff_checkpoint_folders(options.file, options.other, options.json);
  const SafetensorsDifference diff = diff_safetensors(SafetensorsFile(options.file), SafetensorsFile(options.other));
  const int code = diff.tensors.empty() ? 0 : exit_code(ErrorKind::kCheckFailed);
  if (options.json) {
    std::printf("%s", json_result(json_of(diff)).c_str());
    return code;
  }
  std::printf("a: %s\nb: %s\n", options.file.c_str(), options.other.c_str());
  for (const TensorDifference& d : diff.tensors) std::printf("%s: %s\n", d.name.c_str(), difference_text(d).c_str());
  std::vector<std::string> keys;
  for (const std::string& key : diff.metadata) keys.push_back(metadata_text(key));
  if (!keys.empty()) std::printf("metadata that differs (does not count): %s\n", join(keys, ", ").c_str());
  if (diff.tensors.empty()) {
    std::printf("the same: %llu tensors, bit for bit\n", static_cast<LongUnsigned>(diff.same_tensors));
  } else {
    std::printf("tensors that differ: %zu, the same: %llu\n", diff.tensors.size(),
                static_cast<LongUnsigned>(diff.same_tensors));
  }
  return code;
}

}  // namespace

CommandAction setup_ckpt(CommandLine& app) {
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab ckpt inspect runs/ckpt\n  ranklab ckpt verify model.safetensors\n"
      "  ranklab ckpt diff before.safetensors after.safetensors\n"
      "  ranklab ckpt reshard runs/ckpt runs/tp2 --tp 2 --dp 2\n"
      "  ranklab ckpt export-hf runs/ckpt runs/hf --dtype bf16\n  ranklab ckpt import-hf runs/hf runs/from_hf");
  constexpr const char* kWhat = "a checkpoint, the folder of --save (its newest one), or a safetensors file";
  auto options = std::make_shared<CkptOptions>();
  CommandLine* show = app.add_subcommand(
      "inspect", "print the tensors and settings of a checkpoint, a Hugging Face folder, or a safetensors file");
  show->add_option("FILE", options->file, std::string(kWhat) + ", or a Hugging Face folder")->required();
  CommandLine* prove =
      app.add_subcommand("verify", "verify the structure and every checksum of a checkpoint or a safetensors file");
  prove->add_option("FILE", options->file, kWhat)->required();
  CommandLine* compare =
      app.add_subcommand("diff", "compare two checkpoints (of any layouts) or files; exit code 4 if they differ");
  compare->add_option("A", options->file, kWhat)->required();
  compare->add_option("B", options->other, "the one to hold against it")->required();
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
