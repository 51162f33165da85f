#include "cli/eval/eval_input.h"

#include <algorithm>
#include <memory>

#include "cli/model/saved_tokenizer.h"
#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/corpus.h"
#include "core/data/packed_format.h"
#include "core/data/token_shard.h"
#include "core/runtime/training_data.h"

namespace ranklab {
namespace {

constexpr uint64_t kMostTokens = uint64_t{1} << 28;

// Adds the file's name to errors of the tokenizer, which does not know what file it reads.
template <typename Encode>
auto naming(const std::string& place, const Encode& encode) {
  try {
    return encode();
  } catch (const Error& error) {
    ErrorText text = error.text();
    text.what = place + ": " + text.what;
    throw Error(error.kind(), text);
  }
}

void take_file(EvalInput& input, const std::string& path, EvalTokenizer& tokenizer) {
  require_text(path, "--text");
  std::string text = read_whole_file(path, kMostTokens,
                                     {.where = "eval --text", .fix = "name a text file, or a folder of token shards"});
  text.erase(0, byte_order_mark(text));
  require_unpacked(path, std::string_view(text).substr(0, 64), "--text");
  input.text = naming(quote(path), [&] { return tokenizer.text(text); });
  input.text_bytes = tokenizer.scored_bytes(text, input.text);
}

// Of the tokens of another tokenizer the model knows nothing, and its perplexity would say nothing. Of an imported
// model without a tokenizer it is not known what its tokens are.
void require_tokens_of(const SavedModel& saved, const std::string& load, const std::string& shards) {
  std::vector<std::string> notes;
  const std::optional<Tokenizer> own =
      saved.checkpoint ? tokenizer_of(*saved.checkpoint) : saved_tokenizer(load, notes);
  if (!own && (!saved.checkpoint || saved.checkpoint->manifest().config.empty())) return;
  const InputFormat format = read_shard_index(shards).format;
  const std::string hash = own ? own->hash() : "";
  RANKLAB_CHECK(format.tokenizer == hash, ErrorKind::kInvalidArgument, .where = "eval --text",
                .what = "the tokens of " + quote(shards) + " are not those of the model " + quote(load),
                .got = kind_of_tokens(format.tokenizer, format.gives_bytes()),
                .want = own ? kind_of_tokens(hash, false) : "tokens without a tokenizer",
                .fix = own ? "prepare the text with the tokenizer beside the weights: ranklab data prepare FILE "
                             "--tokenizer PATH --out FOLDER"
                           : "name the text itself, or shards that were prepared without --tokenizer");
}

std::vector<int64_t> tokens_of_folder(const std::string& path) {
  const std::shared_ptr<const TokenSequence> shards = open_shards(path);
  RANKLAB_CHECK(shards->size() <= static_cast<int64_t>(kMostTokens), ErrorKind::kInvalidArgument,
                .where = "eval --text", .what = quote(path) + " is too large",
                .got = std::to_string(shards->size()) + " tokens", .want = "at most " + std::to_string(kMostTokens),
                .fix = "prepare a part of it");
  std::vector<int64_t> tokens(static_cast<size_t>(shards->size()));
  shards->read(0, tokens);
  return tokens;
}

// Counts the scored tokens: all of them, or as in training's own validation, only those that do not follow the end of a
// document.
void settle_scored(EvalInput& input, const EvalRequest& request, const DocumentSettings& documents) {
  for (ScoreRequest& window : input.requests) {
    if (documents.eod_mask_loss) window.none_after = documents.eod_token;
    input.text_tokens += window.scored();
  }
  const int64_t all = static_cast<int64_t>(input.text.tokens.size()) - input.text.first;
  if (input.text_tokens < all) input.text_bytes.reset();
  RANKLAB_CHECK(input.text_tokens > 0, ErrorKind::kBadFile, .where = "eval --text",
                .what = quote(request.text) + " has nothing to score",
                .got = "only tokens after " + std::to_string(documents.eod_token) + ", which ends documents",
                .want = "one after another token", .fix = "leave --eod-mask-loss out, or correct --eod-token");
}

void add_text(EvalInput& input, const EvalRequest& request, const TrainConfig& config, EvalTokenizer* tokenizer) {
  if (request.text.empty()) return;
  if (tokenizer != nullptr)
    take_file(input, request.text, *tokenizer);
  else
    input.text = {tokens_of_folder(request.text), 1};
  const auto count = static_cast<int64_t>(input.text.tokens.size());
  RANKLAB_CHECK(count > input.text.first, ErrorKind::kBadFile, .where = "eval --text",
                .what = quote(request.text) + " is too short",
                .got = std::to_string(count) + (tokenizer != nullptr && tokenizer->bytes() ? " bytes" : " tokens"),
                .want = std::to_string(input.text.first + 1) + " or more: the first " +
                        (input.text.first == 1 ? "one is" : std::to_string(input.text.first) + " are") +
                        " only the context of the others",
                .fix = "name a longer text");
  const int64_t context = config.model.seq_length;
  input.requests =
      text_windows(input.text.tokens, context, request.stride > 0 ? request.stride : context, input.text.first);
  input.windows = input.requests.size();
  settle_scored(input, request, config.documents);
}

// Rejects what cannot be scored, naming the line.
void check_choice(const EvalRequest& request, const ChoiceTask& task, size_t choice, const ScoredTokens& tokens,
                  int64_t context) {
  const auto count = static_cast<int64_t>(tokens.tokens.size());
  const std::string line = quote(request.tasks) + ", line " + std::to_string(task.line) + ": ";
  RANKLAB_CHECK(
      count <= context + 1, ErrorKind::kInvalidArgument, .where = "eval --tasks",
      .what = line + "the query with choice " + std::to_string(choice) + " is longer than the model's context",
      .got = std::to_string(count) + " tokens", .want = "at most " + std::to_string(context + 1),
      .fix = "shorten it, or raise --seq-length where the model has no learned positions");
  RANKLAB_CHECK(tokens.first > 0, ErrorKind::kInvalidArgument, .where = "eval --tasks",
                .what = line + "the query has no token that the choices follow", .got = quote(task.query),
                .want = "a text that is not only spaces", .fix = "write the text that the choices continue");
  RANKLAB_CHECK(tokens.first < count, ErrorKind::kInvalidArgument, .where = "eval --tasks",
                .what = line + "choice " + std::to_string(choice) + " has no token of its own",
                .got = std::to_string(count) + " tokens with it, " + std::to_string(tokens.first) + " of the query",
                .want = "more tokens with the choice than without", .fix = "pass a --delimiter, such as a space");
}

void add_tasks(EvalInput& input, const EvalRequest& request, int64_t context, EvalTokenizer* tokenizer) {
  if (request.tasks.empty()) return;
  input.tasks = read_choice_tasks(request.tasks);
  for (const ChoiceTask& task : input.tasks) {
    for (size_t i = 0; i < task.choices.size(); ++i) {
      const std::string place = quote(request.tasks) + ", line " + std::to_string(task.line);
      input.choices.push_back(
          naming(place, [&] { return tokenizer->pair(task.query, request.delimiter + task.choices[i]); }));
      check_choice(request, task, i, input.choices.back(), context);
    }
  }
  for (const ScoredTokens& choice : input.choices)
    input.requests.push_back({.tokens = choice.tokens, .first = choice.first});
}

void check_vocabulary(const EvalInput& input, int64_t vocab_size) {
  int64_t largest = 0;
  for (const ScoreRequest& request : input.requests)
    for (const int64_t token : request.tokens) largest = std::max(largest, token);
  RANKLAB_CHECK(largest < vocab_size, ErrorKind::kInvalidArgument, .where = "eval",
                .what = "there is a token outside the model's vocabulary", .got = std::to_string(largest),
                .want = "below its vocabulary of " + std::to_string(vocab_size),
                .fix = "pass the tokenizer of the model's data to --tokenizer");
}

}  // namespace

EvalInput read_eval_input(const EvalRequest& request, const TrainConfig& config, const SavedModel* saved,
                          const std::string& load) {
  const ModelConfig& model = config.model;
  RANKLAB_CHECK(request.stride <= model.seq_length, ErrorKind::kInvalidArgument, .where = "--stride",
                .what = "tokens between the windows would not be scored", .got = std::to_string(request.stride),
                .want = "at most the context of " + std::to_string(model.seq_length), .fix = "lower --stride");
  const bool folder = !request.text.empty() && is_folder(request.text);
  std::optional<EvalTokenizer> tokenizer;
  if ((!request.text.empty() && !folder) || !request.tasks.empty())
    tokenizer.emplace(choose_eval_tokenizer(request.tokenizer, saved, load, model.vocab_size));
  RANKLAB_CHECK(tokenizer || request.tokenizer.empty(), ErrorKind::kInvalidArgument, .where = "--tokenizer",
                .what = "it would read nothing: the folder has tokens already", .got = quote(request.text),
                .want = "a text file, or --tasks", .fix = "leave --tokenizer out");
  if (folder && saved != nullptr) require_tokens_of(*saved, load, request.text);
  EvalInput input;
  if (tokenizer) input.tokenizer = tokenizer->hash();
  add_text(input, request, config, folder || !tokenizer ? nullptr : &*tokenizer);
  add_tasks(input, request, model.seq_length, tokenizer ? &*tokenizer : nullptr);
  check_vocabulary(input, model.vocab_size);
  return input;
}

}  // namespace ranklab
