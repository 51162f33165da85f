// `ranklab data tokenizer`: trains one, shows how it tokenizes a text, and describes a tokenizer file.
#include "cli/data/data_tokenizer.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/data/train_tokenizer.h"
#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/corpus.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMostTextBytes = 256 << 20;

struct TokenizerOptions {
  std::string tokenizer, file, text;
  std::vector<std::string> ids;
  bool no_special = false, skip_special = false, bench = false, json = false;
};

std::string read_input(const std::string& file) {
  return read_whole_file(file, kMostTextBytes,
                         {.where = "data", .fix = "pass a readable file", .take_open_pipe = true});
}

// Takes the input from one of the two options for it.
std::string input_of(const TokenizerOptions& options, const CommandOption& given, const std::string& value) {
  RANKLAB_CHECK((given.count() > 0) != !options.file.empty(), ErrorKind::kInvalidArgument, .where = "data tokenizer",
                .what = "exactly one input is needed",
                .got = options.file.empty() ? "neither a file nor " + given.name() : "both a file and " + given.name(),
                .want = "one of them", .fix = "name a file, or pass " + given.name());
  return options.file.empty() ? value : read_input(options.file);
}

int encode(const TokenizerOptions& options, const CommandOption& given) {
  const std::string text = input_of(options, given, options.text);
  Tokenizer tokenizer = open_tokenizer(options.tokenizer);
  const std::vector<uint32_t> ids = tokenizer.encode(text, !options.no_special);
  if (options.json) {
    std::fputs(json_result({{"bytes", text.size()}, {"count", ids.size()}, {"tokens", ids}}, {}, -1).c_str(), stdout);
    return 0;
  }
  for (size_t i = 0; i < ids.size(); ++i) std::printf(i == 0 ? "%u" : " %u", ids[i]);
  std::printf("\n");
  return 0;
}

std::vector<int64_t> parse_ids(const std::string& text) {
  std::vector<int64_t> ids;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool digits = word.size() < 10 && word.find_first_not_of("0123456789") == std::string::npos;
    RANKLAB_CHECK(digits, ErrorKind::kInvalidArgument, .where = "data tokenizer decode", .what = "not a token id",
                  .got = quote(without_controls(shown_as_utf8(word.substr(0, 40)))), .want = "ids separated by spaces",
                  .fix = "pass what data tokenizer encode prints");
    ids.push_back(std::stoll(word));
  }
  return ids;
}

int decode(const TokenizerOptions& options, const CommandOption& given) {
  const std::vector<int64_t> ids = parse_ids(input_of(options, given, join(options.ids, " ")));
  const std::string text = open_tokenizer(options.tokenizer).decode(ids, options.skip_special);
  if (options.json)
    std::fputs(json_result({{"count", ids.size()}, {"text", shown_as_utf8(text)}}).c_str(), stdout);
  else
    std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

// Encodes the file, or the corpus that runs train on, twice and times the second pass, when most words are cached.
Json measure(Tokenizer& tokenizer, const std::string& file) {
  const std::string text = file.empty() ? load_corpus("").text : read_input(file);
  std::vector<double> rates;
  size_t tokens = 0;
  for (int run = 0; run < 2; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    tokens = tokenizer.encode(text).size();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    rates.push_back(static_cast<double>(text.size()) / 1e6 / seconds.count());
  }
  return {{"bytes", text.size()},
          {"tokens", tokens},
          {"bytes_per_token", static_cast<double>(text.size()) / static_cast<double>(tokens)},
          {"first_mb_per_s", rates[0]},
          {"mb_per_s", rates[1]}};
}

Json info_json(const Tokenizer& tokenizer) {
  const TokenizerSpec& spec = tokenizer.spec();
  Json added = Json::array(), patterns = Json::array(), forms = Json::array();
  for (const AddedToken& token : spec.added)
    added.push_back({{"id", token.id}, {"content", token.content}, {"special", token.special}});
  for (const SplitStep& step : spec.pre_tokenizer.splits) patterns.push_back(step.pattern);
  if (spec.pre_tokenizer.gpt2_pattern) patterns.push_back("GPT-2's");
  constexpr std::array kForms = {"NFC", "NFD", "NFKC", "NFKD"};
  for (const NormalForm form : spec.normal_forms) forms.push_back(kForms[static_cast<size_t>(form)]);
  const std::optional<uint32_t> end = tokenizer.end_token();
  return {{"vocab_size", tokenizer.vocab_size()},
          {"merges", spec.merges.size()},
          {"normal_forms", forms},
          {"patterns", patterns},
          {"ignore_merges", spec.ignore_merges},
          {"added_tokens", added},
          {"end_token", end ? Json(*end) : Json(nullptr)},
          {"before", spec.before},
          {"after", spec.after},
          {"hash", tokenizer.hash()}};
}

void print_info(const TokenizerOptions& options, const Json& data) {
  std::printf("%s: byte-level BPE, vocabulary %ld, %ld merges\n", options.tokenizer.c_str(),
              data["vocab_size"].get<long>(), data["merges"].get<long>());
  for (const Json& form : data["normal_forms"])
    std::printf("  text is normalized: %s\n", form.get<std::string>().c_str());
  for (const Json& pattern : data["patterns"])
    std::printf("  text is split by: %s\n", without_controls(pattern.get<std::string>()).c_str());
  for (const Json& token : data["added_tokens"])
    std::printf("  %7ld %s%s\n", token["id"].get<long>(), without_controls(token["content"].get<std::string>()).c_str(),
                data["end_token"] == token["id"] ? "  ends a document" : "");
  if (!data.contains("bench")) return;
  const Json& bench = data["bench"];
  std::printf("%ld bytes as %ld tokens, %.2f bytes per token: %.1f MB/s, the first time %.1f MB/s\n",
              bench["bytes"].get<long>(), bench["tokens"].get<long>(), bench["bytes_per_token"].get<double>(),
              bench["mb_per_s"].get<double>(), bench["first_mb_per_s"].get<double>());
}

int info(const TokenizerOptions& options) {
  RANKLAB_CHECK(options.bench || options.file.empty(), ErrorKind::kInvalidArgument, .where = "data tokenizer info",
                .what = "a file without --bench", .got = quote(options.file), .want = "--bench with it",
                .fix = "add --bench, or leave the file out");
  Tokenizer tokenizer = open_tokenizer(options.tokenizer);
  Json data = info_json(tokenizer);
  if (options.bench) data["bench"] = measure(tokenizer, options.file);
  if (options.json)
    std::fputs(json_result(data).c_str(), stdout);
  else
    print_info(options, data);
  return 0;
}

using Shared = std::shared_ptr<TokenizerOptions>;

CommandLine* add_command(CommandLine& app, const Shared& options, const char* name, const char* about) {
  CommandLine* command = app.add_subcommand(name, about);
  command
      ->add_option("--tokenizer", options->tokenizer,
                   "tokenizer.json, or a folder with it or vocab.json and merges.txt")
      ->required()
      ->type_name("PATH");
  command->add_flag("--json", options->json, "print one JSON object");
  return command;
}

}  // namespace

CommandAction setup_data_tokenizer(CommandLine& app) {
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab data tokenizer train book.txt --vocab-size 8192 -o tok\n"
      "  ranklab data tokenizer encode --tokenizer tok --text 'In the beginning'\n"
      "  ranklab data tokenizer info --tokenizer tok --bench\n"
      "  ranklab data prepare book.txt --tokenizer tok --append-eod --out shards");
  auto options = std::make_shared<TokenizerOptions>();
  CommandLine* train = app.add_subcommand("train", "train a byte-level BPE on texts and write tokenizer.json");
  const CommandAction train_action = setup_train_tokenizer(*train);
  CommandLine* to_ids = add_command(app, options, "encode", "print a text's tokens");
  to_ids->add_option("FILE", options->file, "the text");
  CommandOption* text = to_ids->add_option("--text", options->text, "text to encode, instead of a file");
  to_ids->add_flag("--no-special-tokens", options->no_special, "do not add the tokens of the post-processor");
  CommandLine* to_text = add_command(app, options, "decode", "print the text of tokens");
  to_text->add_option("FILE", options->file, "the tokens' numbers");
  CommandOption* ids = to_text->add_option("--ids", options->ids, "token ids to decode, e.g. 40 716");
  to_text->add_flag("--skip-special-tokens", options->skip_special, "leave out special tokens");
  CommandLine* show = add_command(app, options, "info", "describe a tokenizer");
  show->add_option("FILE", options->file, "the text for --bench");
  show->add_flag("--bench", options->bench, "measure encoding speed on the text, or else on the default corpus");
  return [&app, options, train, train_action, to_ids, text, to_text, ids, show] {
    if (train->parsed()) return train_action();
    if (to_ids->parsed()) return encode(*options, *text);
    if (to_text->parsed()) return decode(*options, *ids);
    if (show->parsed()) return info(*options);
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
