#include "cli/eval/eval_input.h"

#include <filesystem>
#include <memory>

#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/text.h"
#include "core/data/token_dataset.h"
#include "core/data/token_shard.h"

namespace ranklab {
namespace {

constexpr uint64_t kMostTokens = uint64_t{1} << 28;

std::vector<int64_t> tokens_of_file(const std::string& path) {
  const std::string text = read_whole_file(
      path, kMostTokens,
      {.kind = ErrorKind::kBadFile, .where = "eval --text", .fix = "name a text file, or a folder of token shards"});
  return ByteTokenizer::encode(text);
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

void add_text(EvalInput& input, const EvalRequest& request, int64_t context) {
  if (request.text.empty()) return;
  input.text_tokens = input.text_is_bytes ? tokens_of_file(request.text) : tokens_of_folder(request.text);
  RANKLAB_CHECK(input.text_tokens.size() >= 2, ErrorKind::kBadFile, .where = "eval --text",
                .what = quote(request.text) + " is too short",
                .got = std::to_string(input.text_tokens.size()) + (input.text_is_bytes ? " bytes" : " tokens"),
                .want = "2 or more: the first one is only what the others follow", .fix = "name a longer text");
  input.requests = text_windows(input.text_tokens, context, request.stride > 0 ? request.stride : context);
  input.windows = input.requests.size();
}

void add_tasks(EvalInput& input, const EvalRequest& request, int64_t context) {
  if (request.tasks.empty()) return;
  input.tasks = read_choice_tasks(request.tasks);
  for (const ChoiceTask& task : input.tasks) {
    for (size_t i = 0; i < task.choices.size(); ++i) {
      const std::string all = task.query + request.delimiter + task.choices[i];
      RANKLAB_CHECK(static_cast<int64_t>(all.size()) <= context + 1, ErrorKind::kInvalidArgument,
                    .where = "eval --tasks",
                    .what = quote(request.tasks) + ", line " + std::to_string(task.line) + ": the query with choice " +
                            std::to_string(i) + " is longer than the model's context",
                    .got = std::to_string(all.size()) + " tokens", .want = "at most " + std::to_string(context + 1),
                    .fix = "shorten it, or raise --seq-length where the model has no learned positions");
      input.task_tokens.push_back(ByteTokenizer::encode(all));
    }
  }
  size_t next = 0;
  for (const ChoiceTask& task : input.tasks)
    for (size_t i = 0; i < task.choices.size(); ++i)
      input.requests.push_back({.tokens = input.task_tokens[next++],
                                .first = static_cast<int64_t>(task.query.size() + request.delimiter.size())});
}

}  // namespace

EvalInput read_eval_input(const EvalRequest& request, const ModelConfig& model) {
  const bool folder = !request.text.empty() && std::filesystem::is_directory(request.text);
  const bool needs_bytes = (!request.text.empty() && !folder) || !request.tasks.empty();
  RANKLAB_CHECK(!needs_bytes || model.vocab_size == ByteTokenizer::kVocabSize, ErrorKind::kInvalidArgument,
                .where = "eval", .what = "text is bytes, and this model's vocabulary is not",
                .got = "a vocabulary of " + std::to_string(model.vocab_size) + " tokens",
                .want = std::to_string(ByteTokenizer::kVocabSize),
                .fix = "evaluate its tokens: --text FOLDER of ranklab data prepare --from nanogpt");
  RANKLAB_CHECK(request.stride <= model.seq_length, ErrorKind::kInvalidArgument, .where = "--stride",
                .what = "tokens between the windows would not be scored", .got = std::to_string(request.stride),
                .want = "at most the context of " + std::to_string(model.seq_length), .fix = "lower --stride");
  EvalInput input{.text_is_bytes = !folder};
  add_text(input, request, model.seq_length);
  add_tasks(input, request, model.seq_length);
  return input;
}

}  // namespace ranklab
