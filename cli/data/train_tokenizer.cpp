// `ranklab data tokenizer train`: trains a byte-level BPE on the user's text.
#include "cli/data/train_tokenizer.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/terminal.h"
#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folder_lock.h"
#include "core/base/files/output_file.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/checkpoint/hf/tokenizer.h"
#include "core/data/text_reader.h"
#include "core/data/tokenizer/bpe_trainer.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/data/tokenizer/tokenizer_styles.h"

namespace ranklab {
namespace {

struct TokenizerTraining {
  std::vector<std::string> files, special = {"<|endoftext|>"};
  std::string out, style = "gpt2", json_key = "text";
  int64_t vocab_size = BpeTraining{}.vocab_size, min_frequency = BpeTraining{}.min_frequency;
  bool force = false, json = false;
};

std::vector<std::string> tokenizer_files(const TokenizerTraining& options) {
  return {options.out + "/" + kTokenizerFile, options.out + "/tokenizer_config.json"};
}

void check_tokenizer_files(const TokenizerTraining& options) {
  for (const std::string& path : tokenizer_files(options))
    check_output({.path = path, .option = "-o", .inputs = options.files, .force = options.force});
}

// RETURNS: whether it was not there before.
bool make_tokenizer_folder(const std::string& folder) {
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(folder, error);
  RANKLAB_CHECK(!error && std::filesystem::is_directory(folder), ErrorKind::kIo, .where = "tokenizer",
                .what = "cannot create folder " + quote(folder), .got = error ? error.message() : "a file of that name",
                .fix = "pass another folder to -o");
  return is_new;
}

TokenizerSpec learn(const TokenizerTraining& options, uint64_t& bytes, size_t& words) {
  TokenizerSpec style;
  tokenizer_style(options.style).set(style);
  BpeTrainer trainer(style);
  for (const std::string& file : options.files)
    bytes += each_training_text(file, options.json_key, [&](const std::string& text) { trainer.add(text); });
  RANKLAB_CHECK(bytes > 0, ErrorKind::kBadFile, .where = "tokenizer", .what = "the inputs are empty", .got = "0 bytes",
                .want = "text", .fix = "pass other files");
  words = trainer.words();
  BpeTraining training{
      .vocab_size = options.vocab_size, .min_frequency = options.min_frequency, .special = options.special};
  const bool terminal = on_terminal(STDERR_FILENO);
  if (terminal) {
    training.progress = [](int64_t done, int64_t total) {
      if (done % 256 == 0)
        std::fprintf(stderr, "\r%ld of %ld tokens", static_cast<long>(done), static_cast<long>(total));
    };
  }
  TokenizerSpec spec = trainer.train(training);
  if (terminal) std::fprintf(stderr, "\n");
  return spec;
}

void write_tokenizer(const TokenizerTraining& options, const TokenizerSpec& spec) {
  const ErrorText refusal{.where = "tokenizer", .what = "cannot write the tokenizer", .fix = "check the folder"};
  const std::vector<std::string> paths = tokenizer_files(options);
  write_file_atomically(paths[0], tokenizer_json(spec), refusal);
  write_file_atomically(paths[1], hf_tokenizer_config({}, options.special.empty() ? "" : options.special[0]), refusal);
}

// Learning takes minutes, in which another training could write into the same folder: it is locked meanwhile.
TokenizerSpec learn_into_folder(const TokenizerTraining& options, uint64_t& bytes, size_t& words) {
  const bool is_new = make_tokenizer_folder(options.out);
  const FolderLock lock(options.out, "tokenizer", "-o");
  check_tokenizer_files(options);
  try {
    TokenizerSpec spec = learn(options, bytes, words);
    write_tokenizer(options, spec);
    return spec;
  } catch (...) {
    std::error_code ignored;
    if (is_new) std::filesystem::remove(options.out, ignored);  // only if nothing is in it
    throw;
  }
}

int train_tokenizer(const TokenizerTraining& options) {
  for (const std::string& token : options.special)
    RANKLAB_CHECK(!token.empty() && is_utf8(token), ErrorKind::kInvalidArgument, .where = "--special",
                  .what = token.empty() ? "a special token is empty" : "a special token is not UTF-8",
                  .got = quote(without_controls(shown_as_utf8(token))), .want = "a text", .fix = "leave it out");
  uint64_t bytes = 0;
  size_t words = 0;
  const TokenizerSpec spec = learn_into_folder(options, bytes, words);
  const std::string path = tokenizer_files(options)[0];
  if (options.json) {
    std::fputs(json_result({{"file", path},
                            {"vocab_size", spec.vocab.size()},
                            {"merges", spec.merges.size()},
                            {"bytes", bytes},
                            {"different_words", words}})
                   .c_str(),
               stdout);
    return 0;
  }
  std::printf("%s: vocabulary %zu, %s, from %s with %s\n", path.c_str(), spec.vocab.size(),
              counted(static_cast<int64_t>(spec.merges.size()), "merge").c_str(),
              counted(static_cast<int64_t>(bytes), "byte").c_str(),
              counted(static_cast<int64_t>(words), "different word").c_str());
  if (static_cast<int64_t>(spec.vocab.size()) < options.vocab_size)
    std::printf("  the texts have no more pairs that occur %ld times\n", static_cast<long>(options.min_frequency));
  std::printf("  use it: ranklab data prepare FILE --tokenizer %s --append-eod --out shards\n", options.out.c_str());
  return 0;
}

}  // namespace

CommandAction setup_train_tokenizer(CommandLine& app) {
  auto options = std::make_shared<TokenizerTraining>();
  std::vector<std::string> styles;
  for (const TokenizerStyle& style : tokenizer_styles()) styles.emplace_back(style.name);
  app.add_option("FILE", options->files, "texts, of NAME.jsonl or NAME.json each line a document")->required();
  app.add_option("-o,--out", options->out, "folder for tokenizer.json")->required()->type_name("FOLDER");
  app.add_option("--vocab-size", options->vocab_size, "vocabulary size, including special tokens and the 256 bytes")
      ->capture_default_str()
      ->range(int64_t{257}, int64_t{1} << 20);
  app.add_option("--style", options->style, "whose patterns and normal form: " + join(styles, " | "))
      ->one_of(styles)
      ->capture_default_str();
  app.add_option("--special", options->special, "special token; the first one ends documents")
      ->one_value_each()
      ->capture_default_str();
  app.add_option("--min-frequency", options->min_frequency, "minimum number of occurrences of a pair to be merged")
      ->capture_default_str()
      ->range(int64_t{1}, int64_t{1} << 40);
  app.add_option("--json-key", options->json_key, "the key of the text in a line of JSON")->capture_default_str();
  app.add_flag("--force", options->force, "overwrite an existing tokenizer");
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return train_tokenizer(*options); };
}

}  // namespace ranklab
