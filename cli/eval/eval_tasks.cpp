#include "cli/eval/eval_tasks.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using nlohmann::json;

constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr const char* kFix =
    "write lines such as {\"query\": \"Two and two are\", \"choices\": [\"four\", \"five\"], \"gold\": 0}";

[[noreturn]] void refuse(const std::string& path, int64_t line, const std::string& what, const std::string& got,
                         const std::string& want) {
  throw Error(ErrorKind::kBadFile, {.where = "eval --tasks",
                                    .what = quote(path) + ", line " + std::to_string(line) + ": " + what,
                                    .got = got,
                                    .want = want,
                                    .fix = kFix});
}

// The first of these fields that the task has; null if it has none.
const json* field_of(const json& task, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto at = task.find(name); at != task.end()) return &*at;
  return nullptr;
}

std::optional<size_t> place_of(const json& answer, const std::vector<std::string>& choices) {
  if (answer.is_number_integer()) {
    const auto place = answer.get<int64_t>();
    if (place >= 0 && place < static_cast<int64_t>(choices.size())) return static_cast<size_t>(place);
    return {};
  }
  if (!answer.is_string()) return {};
  const auto text = answer.get<std::string>();
  const auto same = std::ranges::find(choices, text);
  if (same != choices.end()) return static_cast<size_t>(same - choices.begin());
  const bool letter = text.size() == 1 && text[0] >= 'A' && text[0] < 'A' + static_cast<int>(choices.size());
  return letter ? std::optional(static_cast<size_t>(text[0] - 'A')) : std::nullopt;
}

std::vector<std::string> choices_of(const json& task, const std::string& path, int64_t line) {
  const json* choices = field_of(task, {"choices"});
  const bool texts = choices != nullptr && choices->is_array() && choices->size() >= 2 &&
                     std::ranges::all_of(*choices, [](const json& one) { return one.is_string(); });
  if (!texts)
    refuse(path, line, "no choices", choices == nullptr ? "no field \"choices\"" : choices->dump().substr(0, 60),
           "two texts or more");
  auto out = choices->get<std::vector<std::string>>();
  const auto empty = std::ranges::find(out, "");
  if (empty != out.end())
    refuse(path, line, "a choice is empty", "choice " + std::to_string(empty - out.begin()),
           "at least one byte: an empty text has no likelihood");
  return out;
}

ChoiceTask task_of(const std::string& text, const std::string& path, int64_t line) {
  const json task = json::parse(text, nullptr, false);
  if (!task.is_object())
    refuse(path, line, "not a JSON object", quote(without_controls(text.substr(0, 60))), "one per line");
  const json* query = field_of(task, {"query", "question", "context"});
  if (query == nullptr || !query->is_string() || query->get<std::string>().empty())
    refuse(path, line, "no query", query == nullptr ? "no such field" : query->dump().substr(0, 60),
           "a text in \"query\" or \"question\"");
  ChoiceTask out{.query = query->get<std::string>(), .choices = choices_of(task, path, line), .line = line};
  const json* answer = field_of(task, {"gold", "answer", "label"});
  const std::optional<size_t> gold = answer == nullptr ? std::nullopt : place_of(*answer, out.choices);
  if (!gold)
    refuse(path, line, "no right answer",
           answer == nullptr ? "no field \"gold\" or \"answer\"" : answer->dump().substr(0, 60),
           "the index of a choice, from 0, its letter, or its text");
  out.gold = *gold;
  return out;
}

}  // namespace

std::vector<ChoiceTask> read_choice_tasks(const std::string& path) {
  const std::string text = read_whole_file(path, kMostBytes, {.where = "eval --tasks", .fix = kFix});
  std::vector<ChoiceTask> out;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (is_blank(line)) continue;
    out.push_back(task_of(line, path, number));
  }
  RANKLAB_CHECK(!out.empty(), ErrorKind::kBadFile, .where = "eval --tasks", .what = quote(path) + " has no tasks",
                .got = std::to_string(text.size()) + " bytes", .want = "a JSON object per line", .fix = kFix);
  return out;
}

TaskAnswer answer_of(const ChoiceTask& task, std::span<const double> log_likelihood) {
  TaskAnswer out{.log_likelihood = {log_likelihood.begin(), log_likelihood.end()}};
  const auto by_byte = [&](size_t i) { return log_likelihood[i] / static_cast<double>(task.choices[i].size()); };
  for (size_t i = 1; i < log_likelihood.size(); ++i) {
    if (log_likelihood[i] > log_likelihood[out.chosen]) out.chosen = i;
    if (by_byte(i) > by_byte(out.chosen_by_byte)) out.chosen_by_byte = i;
  }
  return out;
}

Accuracy accuracy_of(size_t correct, size_t tasks) {
  const double n = static_cast<double>(tasks), share = static_cast<double>(correct) / n;
  return {share, tasks > 1 ? std::sqrt(share * (1 - share) / (n - 1)) : 0};
}

}  // namespace ranklab
