// `ranklab data prepare | info | batch | export | tokenizer`: makes token shards for --data-path, and shows what a step
// of a run draws from them.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/terminal.h"
#include "cli/data/data_export.h"
#include "cli/data/data_tokenizer.h"
#include "cli/training_module.h"
#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/config/data_choice.h"
#include "core/data/token_shard.h"
#include "core/data/tokenizer/tokenizer.h"

namespace ranklab {
namespace {

constexpr int64_t kMostEndToken = (1 << 24) - 1;  // as in the largest vocabulary

struct DataOptions {
  std::vector<std::string> files;
  std::string out;
  int64_t shard_tokens = PrepareOptions{}.shard_tokens;
  std::string dtype = {};  // "": the smallest that can hold the vocabulary
  std::string from = InputFormat{}.from;
  std::string json_key = InputFormat{}.json_key;
  bool append_eod = false;
  std::optional<int64_t> eod_token;
  std::vector<std::string> folders;
  std::string tokenizer;
  bool force = false, json = false;
};

// The end-of-document token is the tokenizer's; for bytes it is 0 unless given, as in training.
InputFormat format_of(const DataOptions& options, const std::optional<Tokenizer>& tokenizer) {
  RANKLAB_CHECK(options.append_eod || !options.eod_token, ErrorKind::kInvalidArgument, .where = "--eod-token",
                .what = "--eod-token needs --append-eod", .got = std::to_string(options.eod_token.value_or(0)),
                .want = "--append-eod with it", .fix = "add --append-eod, or leave this out");
  InputFormat format{.from = options.from, .json_key = options.json_key};
  if (!options.append_eod) return format;
  const bool named = options.eod_token || !tokenizer || tokenizer->end_token();
  RANKLAB_CHECK(named, ErrorKind::kInvalidArgument, .where = "--append-eod",
                .what = "the tokenizer does not say which of its tokens ends a document",
                .got = quote(options.tokenizer), .want = "--eod-token with it",
                .fix = "see its tokens: ranklab data tokenizer info --tokenizer " + options.tokenizer);
  const uint32_t otherwise = tokenizer ? tokenizer->end_token().value_or(0) : 0;
  format.end_token = options.eod_token ? static_cast<uint32_t>(*options.eod_token) : otherwise;
  return format;
}

nlohmann::ordered_json index_json(const std::string& folder, const ShardIndex& index) {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array(), shards = inputs;
  for (const ShardInput& input : index.inputs)
    inputs.push_back({{"path", input.path}, {"bytes", input.bytes}, {"tokens", input.tokens}});
  for (const ShardInfo& shard : index.shards)
    shards.push_back({{"name", shard.name}, {"tokens", shard.tokens}, {"hash", strprintf("%016lx", shard.hash)}});
  return {{"folder", folder},
          {"tokens", index.tokens()},
          {"dtype", index.width == TokenWidth::kUint16 ? "uint16" : "uint32"},
          {"vocab_size", index.vocab_size},
          {"complete", index.complete},
          {"from", index.format.from},
          {"tokenizer", index.format.tokenizer.empty() ? nlohmann::ordered_json(nullptr)
                                                       : nlohmann::ordered_json(index.format.tokenizer)},
          {"eod_token", index.format.end_token ? nlohmann::ordered_json(*index.format.end_token) : nullptr},
          {"inputs", inputs},
          {"shards", shards}};
}

TokenWidth width_of(const DataOptions& options, const std::optional<Tokenizer>& tokenizer) {
  const bool large = tokenizer && tokenizer->vocab_size() > 1 << 16;
  return options.dtype == "uint32" || (options.dtype.empty() && large) ? TokenWidth::kUint32 : TokenWidth::kUint16;
}

int prepare(const DataOptions& options) {
  std::optional<Tokenizer> tokenizer;
  if (!options.tokenizer.empty()) tokenizer = open_tokenizer(options.tokenizer);
  PrepareOptions how{.width = width_of(options, tokenizer),
                     .shard_tokens = options.shard_tokens,
                     .format = format_of(options, tokenizer),
                     .tokenizer = tokenizer ? &*tokenizer : nullptr,
                     .force = options.force};
  const bool terminal = on_terminal(STDERR_FILENO);
  if (terminal) {
    how.progress = [](int64_t done, int64_t total) {
      std::fprintf(stderr, "\r%s of %s tokens", human_count(static_cast<double>(done)).c_str(),
                   human_count(static_cast<double>(total)).c_str());
    };
  }
  const PrepareResult result = prepare_shards(options.files, options.out, how);
  if (terminal) std::fprintf(stderr, "\n");
  if (options.json) {
    nlohmann::ordered_json data = index_json(options.out, result.index);
    data["resumed_shards"] = result.resumed_shards;
    std::fputs(json_result(data).c_str(), stdout);
    return 0;
  }
  if (result.resumed_shards == result.index.shards.size()) {
    std::printf("nothing to do: %s, complete\n", counted(static_cast<int64_t>(result.resumed_shards), "shard").c_str());
  } else if (result.resumed_shards > 0) {
    std::printf("continued after shard %zu of %zu\n", result.resumed_shards, result.index.shards.size());
  }
  std::printf(
      "%s: %s in %s; train with --data-path %s\n", options.out.c_str(), counted(result.index.tokens(), "token").c_str(),
      counted(static_cast<int64_t>(result.index.shards.size()), "shard").c_str(), shell_path(options.out).c_str());
  return 0;
}

void print_index(const std::string& folder, const ShardIndex& index) {
  std::printf("%s: %ld tokens, %s, vocabulary %ld, %s\n", folder.c_str(), static_cast<long>(index.tokens()),
              index.width == TokenWidth::kUint16 ? "uint16" : "uint32", static_cast<long>(index.vocab_size),
              index.complete ? "complete" : "unfinished: run data prepare again");
  if (!index.format.tokenizer.empty())
    std::printf("  text tokenized by the tokenizer in the folder, %s, hash %s\n", kTokenizerFile,
                index.format.tokenizer.c_str());
  if (index.format.end_token) std::printf("  each document ends with token %u\n", *index.format.end_token);
  for (const ShardInput& input : index.inputs)
    std::printf("  from %s, %lu bytes, %ld tokens\n", input.path.c_str(), static_cast<unsigned long>(input.bytes),
                static_cast<long>(input.tokens));
  for (const ShardInfo& shard : index.shards)
    std::printf("  %s: %ld tokens, hash %016lx, verified\n", shard.name.c_str(), static_cast<long>(shard.tokens),
                static_cast<unsigned long>(shard.hash));
}

// Describes folders, or those of a blend with their weights, and how long a pass over each lasts.
int info(const DataOptions& options) {
  std::vector<DataChoice> choices = data_choices(data_text(options.folders));
  double sum = 0;
  for (DataChoice& choice : choices) {
    if (choice.by_size) choice.weight = static_cast<double>(read_shard_index(choice.path).tokens());
    sum += choice.weight;
  }
  nlohmann::ordered_json sets = nlohmann::ordered_json::array();
  for (const auto& [weight, folder, by_size] : choices) {
    const ShardIndex index = read_shard_index(folder);
    verify_shards(folder);  // index, headers and tokens
    const double share = weight / sum, pass_tokens = static_cast<double>(index.tokens()) / share;
    sets.push_back(index_json(folder, index));
    if (choices.size() > 1) {
      sets.back()["share"] = share;
      sets.back()["tokens_of_the_blend_per_pass"] = pass_tokens;
    }
    if (options.json) continue;
    print_index(folder, index);
    if (choices.size() > 1)
      std::printf("  %.4g %% of the blend, which gives %s tokens in one pass over this set\n", 100 * share,
                  human_count(pass_tokens).c_str());
  }
  if (options.json) std::fputs(json_result(choices.size() == 1 ? sets[0] : sets).c_str(), stdout);
  return 0;
}

CommandAction add_data_batch(CommandLine& app) {
  auto options = std::make_shared<DataBatchOptions>(app);
  app.add_option("--step", options->step, "the step whose batch is shown")->required()->range(0, 1'000'000'000);
  app.add_flag("--validation", options->validation,
               "show this batch of a validation (one of --eval-iters) instead of a training step");
  app.add_option("--rank", options->rank, "only this global rank's part")->range(0, 1 << 20);
  app.add_flag("--json", options->json, "print one JSON object, with every token");
  app.footer(
      "Takes train's settings. Ranks that differ in tp, cp or pp alone share their sequences.\n"
      "Examples:\n  ranklab data batch --step 3 --dp 2 --gbs 8\n  ranklab data batch --step 3 --rank 1 --json\n"
      "  ranklab data batch --validation --step 0 --data-path shards --valid-data-path held_out");
  return [options] {
    options->settings.resolve(options->settings.config());  // rejected before LibTorch is loaded
    return training_functions().print_data_batch(*options);
  };
}

CommandLine* add_prepare(CommandLine& app, const std::shared_ptr<DataOptions>& options) {
  CommandLine* make =
      app.add_subcommand("prepare", "write texts or other trainers' token files as shards; run again to continue");
  make->add_option("FILE", options->files,
                   "the inputs, in this order; of NAME.jsonl or NAME.json each line is a document")
      ->required();
  make->add_option("--out", options->out, "folder for the shards")->required()->type_name("FOLDER");
  make->add_option("--shard-tokens", options->shard_tokens, "tokens per shard")->capture_default_str();
  make->add_option("--dtype", options->dtype,
                   "type of a token (default: uint16 if the tokenizer fits): uint16 | uint32")
      ->one_of({"uint16", "uint32"});
  make->add_option("--tokenizer", options->tokenizer,
                   "tokenizer of the text or of the token files: tokenizer.json, or a folder with it or vocab.json and "
                   "merges.txt (default: each byte of text is a token)")
      ->type_name("PATH");
  make->add_option("--from", options->from,
                   "format of the inputs: text, fineweb (header and 16-bit tokens), nanogpt (16-bit tokens only) or "
                   "megatron (PREFIX.bin with PREFIX.idx)")
      ->one_of(input_formats())
      ->capture_default_str();
  make->add_option("--json-key", options->json_key, "the key of the text in a line of JSON")->capture_default_str();
  make->add_flag("--append-eod", options->append_eod,
                 "add an end-of-document token after each document (needed for --reset-attention-mask)");
  make->add_option("--eod-token", options->eod_token,
                   "the end-of-document token (default: the tokenizer's, else 0, as in train)")
      ->range(int64_t{0}, kMostEndToken);
  make->add_flag("--force", options->force, "overwrite files with the shards' names that are not shards");
  make->add_flag("--json", options->json, "print one JSON object");
  return make;
}

}  // namespace

CommandAction setup_data(CommandLine& app) {
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab data prepare book.txt --out shards\n  ranklab data info shards\n"
      "  ranklab data prepare documents.jsonl --append-eod --out shards\n"
      "  ranklab data prepare fineweb_train_*.bin --from fineweb --out shards\n"
      "  ranklab data tokenizer train book.txt --vocab-size 8192 -o tok\n"
      "  ranklab data prepare book.txt --tokenizer tok --append-eod --out shards\n"
      "  ranklab data batch --step 3 --data-path shards\n"
      "  ranklab train --data-path shards\n"
      "  ranklab train --data-path 0.7 shards 0.3 more");
  auto options = std::make_shared<DataOptions>();
  CommandLine* make = add_prepare(app, options);
  CommandLine* show = app.add_subcommand("info", "print the shards of a folder or a blend, and verify every token");
  show->add_option("FOLDER", options->folders,
                   "folder of shards; of a blend folders, with weights (0.7 A 0.3 B) or by their size")
      ->required();
  show->add_flag("--json", options->json, "print one JSON object");
  CommandLine* batch = app.add_subcommand("batch", "print what a step of a run trains on: documents, offsets, tokens");
  const CommandAction batch_action = add_data_batch(*batch);
  CommandLine* tokenizer =
      app.add_subcommand("tokenizer", "byte-level BPE tokenizers: train, encode, decode, describe");
  const CommandAction tokenizer_action = setup_data_tokenizer(*tokenizer);
  CommandLine* exports = app.add_subcommand("export", "export shards in the format of another trainer");
  const CommandAction export_action = setup_data_export(*exports);
  return [&app, options, make, show, batch, batch_action, tokenizer, tokenizer_action, exports, export_action] {
    if (exports->parsed()) return export_action();
    if (tokenizer->parsed()) return tokenizer_action();
    if (make->parsed()) return prepare(*options);
    if (show->parsed()) return info(*options);
    if (batch->parsed()) return batch_action();
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
