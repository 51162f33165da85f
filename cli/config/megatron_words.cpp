#include "cli/config/megatron_words.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kWhere = "config from-megatron";

// Scripts may keep "--fp8-format hybrid" in one word of an array, and "--split '99,1,0'" with its quotes.
Words single_words(const Words& words) {
  Words all;
  for (const std::string& word : words) {
    std::istringstream in(word);
    for (std::string one; in >> one;) {
      if (one.size() > 1 && (one.front() == '\'' || one.front() == '"') && one.front() == one.back())
        one = one.substr(1, one.size() - 2);
      const size_t equals = one.starts_with("--") ? one.find('=') : std::string::npos;
      all.push_back(one.substr(0, equals));
      if (equals != std::string::npos) all.push_back(one.substr(equals + 1));
    }
  }
  return all;
}

const ConfigField* own_field(const std::string& flag) {
  for (const ConfigField& field : config_fields())
    if (std::ranges::find(field.flags, flag) != field.flags.end()) return &field;
  return nullptr;
}

void check_count(const std::string& flag, const MegatronWords::Given& given) {
  const int want = given.foreign != nullptr                      ? given.foreign->values
                   : given.own->kind == ConfigField::Kind::kFlag ? 0
                                                                 : 1;
  const auto got = static_cast<int>(given.values.size());
  RANKLAB_CHECK(want < 0 ? got > 0 : got == want, ErrorKind::kInvalidArgument, .where = kWhere,
                .what = flag + " has the wrong number of values", .got = quote(join(given.values, " ")),
                .want = want < 0 ? "one or more" : std::to_string(want), .fix = "write it as Megatron-LM takes it");
}

}  // namespace

void refuse_megatron(const std::string& what, const std::string& got, const std::string& want, const std::string& fix) {
  throw Error(
      ErrorKind::kInvalidArgument,
      {.where = "config from-megatron", .what = what, .got = got.empty() ? "" : quote(got), .want = want, .fix = fix});
}

MegatronWords::MegatronWords(const Words& words) {
  Given* last = nullptr;
  Words unknown;
  for (std::string& word : single_words(words)) {
    if (!word.starts_with("--")) {
      // A word that belongs to no flag is the program's name, before the first flag, or the script's, after torchrun's
      // flags.
      if (last != nullptr && !word.ends_with(".py")) last->values.push_back(std::move(word));
      continue;
    }
    std::ranges::replace(word, '_', '-');
    const auto row = std::ranges::find(megatron_flags(), word, &MegatronFlag::name);
    const Given given{{}, row == megatron_flags().end() ? nullptr : &*row, own_field(word)};
    if (given.foreign == nullptr && given.own == nullptr) unknown.push_back(word);
    last = &(flags_[word] = given);
  }
  RANKLAB_CHECK(unknown.empty(), ErrorKind::kInvalidArgument, .where = kWhere,
                .what = "unknown flags, neither Megatron-LM's nor ranklab's", .got = join(unknown, ", "),
                .fix = "leave out those that change neither the model nor its layout");
  for (const auto& [flag, given] : flags_) check_count(flag, given);
}

std::optional<std::string> MegatronWords::text(const std::string& flag, const char* between) const {
  const auto found = flags_.find(flag);
  return found == flags_.end() ? std::nullopt : std::optional(join(found->second.values, between));
}

bool MegatronWords::is(const std::string& flag, double value) const {
  const std::string word = text(flag).value_or("0");
  char* end = nullptr;
  return std::strtod(word.c_str(), &end) == value && *end == '\0';
}

std::optional<int64_t> MegatronWords::number(const std::string& flag, int64_t most) const {
  const auto word = text(flag);
  if (!word) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), value);
  RANKLAB_CHECK(error == std::errc{} && end == word->data() + word->size() && value >= 0 && value <= most,
                ErrorKind::kInvalidArgument, .where = kWhere, .what = flag + " is not a valid number",
                .got = quote(*word), .want = "0 to " + std::to_string(most),
                .fix = "write the number itself, not the shell's variable");
  return value;
}

}  // namespace ranklab
