#include "core/config/data_choice.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/config/train_config.h"

namespace ranklab {
namespace {

const std::string kBySize = "by-size";

[[noreturn]] void refuse_data(const std::string& flag, const std::string& what, const std::string& got,
                              const std::string& want) {
  throw Error(ErrorKind::kInvalidArgument, {.where = flag,
                                            .what = what,
                                            .got = got,
                                            .want = want,
                                            .fix = "as in " + flag + " 0.7 A 0.3 B; a path with spaces needs a link"});
}

}  // namespace

std::optional<double> weight_in(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) return std::strtod(word.c_str(), nullptr);  // overflow or underflow
  return value;
}

void check_text_vocabulary(const TrainConfig& config) {
  constexpr int64_t kBytes = 256;
  const bool has_text =
      config.mock_data ||
      std::ranges::any_of(data_choices(config.data_path), [](const DataChoice& one) { return !is_folder(one.path); });
  RANKLAB_CHECK(
      !has_text || config.model.vocab_size >= kBytes, ErrorKind::kInvalidArgument, .where = "config",
      .what = "the bytes of a text are 256 tokens", .got = "--vocab-size " + std::to_string(config.model.vocab_size),
      .want = "256 or more",
      .fix = "leave it out for the preset's, or train on shards of fewer tokens (ranklab data prepare --from)");
}

std::string data_text(const std::vector<std::string>& words, const std::string& flag) {
  if (words.size() == 1 || weight_in(words[0])) return join(words, " ");
  RANKLAB_CHECK(std::none_of(words.begin(), words.end(), [](const std::string& word) { return weight_in(word); }),
                ErrorKind::kInvalidArgument, .where = flag, .what = "some data sets have no weights",
                .got = quote(join(words, " ")), .want = "a weight before each path, or none",
                .fix = "as in " + flag + " 0.7 A 0.3 B");
  return kBySize + " " + join(words, " ");
}

std::vector<DataChoice> data_choices(const std::string& text, const std::string& flag) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (words.size() < 2 || (!weight_in(words[0]) && words[0] != kBySize)) return {{1, text}};
  std::error_code ignored;
  if (std::filesystem::exists(text, ignored)) return {{1, text}};  // an existing file such as "2024 corpus" is one path
  std::vector<DataChoice> choices;
  if (words[0] == kBySize) {
    for (size_t i = 1; i < words.size(); ++i) choices.push_back({1, words[i], true});
    return choices;
  }
  double sum = 0;
  for (size_t i = 0; i < words.size(); i += 2) {
    const std::optional<double> weight = weight_in(words[i]);
    if (!weight) refuse_data(flag, "a weight is not a number", quote(words[i]), "a weight before each path");
    if (!std::isfinite(*weight) || *weight <= 0)
      refuse_data(flag, "a weight is not positive and finite", quote(words[i]),
                  "a number above 0; a data set without weight is left out");
    if (i + 1 == words.size()) refuse_data(flag, "a weight has no path", quote(words[i]), "a path after each weight");
    choices.push_back({*weight, words[i + 1]});
    sum += *weight;
  }
  if (!std::isfinite(sum)) refuse_data(flag, "the weights have no finite sum", quote(text), "smaller ones");
  return choices;
}

}  // namespace ranklab
