#include "core/config/settings/fitting_sizes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <vector>

#include "core/base/text.h"
#include "core/config/batch_choice.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/sources.h"

namespace ranklab {
namespace {

constexpr size_t kShown = 3;   // at most this many values of a setting are shown ...
constexpr size_t kTried = 10;  // ... and at most this many of the nearest are tried

// A setting that the text mentions, by the name used there.
struct Mentioned {
  const ConfigField* field;
  std::string flag;
  int64_t value;
};

std::vector<Mentioned> mentioned_in(const ErrorText& text, const TrainConfig& config) {
  const std::string all = text.what + "\n" + text.got + "\n" + text.want + "\n" + text.fix;
  std::vector<Mentioned> found;
  for (const ConfigField& field : config_fields()) {
    if (field.type != ConfigField::Type::kInteger) continue;
    const auto flag = std::ranges::find_if(field.flags, [&](const std::string& one) { return mentions(all, one); });
    if (flag != field.flags.end())
      found.push_back({&field, *flag, std::strtoll(field.get(config).c_str(), nullptr, 10)});
  }
  // In the order in which the text mentions them.
  std::ranges::stable_sort(found, {}, [&](const Mentioned& one) { return all.find(one.flag); });
  return found;
}

std::set<int64_t> numbers_in(const std::string& text) {
  std::set<int64_t> numbers;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) break;
    at = std::min(text.find_first_not_of("0123456789", begin), text.size());
    const int64_t number = std::strtoll(text.substr(begin, at - begin).c_str(), nullptr, 10);
    if (number > 0) numbers.insert(number);
  }
  return numbers;
}

// Multiples and divisors of the numbers in the error, the nearest to `value` first.
std::vector<int64_t> candidates(int64_t value, const std::set<int64_t>& numbers) {
  constexpr int64_t kLargestDivisor = 4096, kMostMultiple = int64_t{1} << 40;
  std::set<int64_t> all;
  for (const int64_t number : numbers) {
    const int64_t below = value / number;
    for (int64_t times = std::max<int64_t>(below - 1, 1); times <= below + 2; ++times)
      if (number < kMostMultiple / times) all.insert(number * times);
    for (int64_t divisor = 1; divisor <= std::min(number, kLargestDivisor); ++divisor)
      if (number % divisor == 0) all.insert(divisor);
  }
  all.erase(value);
  std::vector<int64_t> nearest(all.begin(), all.end());
  const auto distance = [value](int64_t one) {
    return std::abs(std::log(static_cast<double>(one)) - std::log(static_cast<double>(std::max<int64_t>(value, 1))));
  };
  std::ranges::stable_sort(nearest, {}, distance);
  nearest.resize(std::min(nearest.size(), kTried));
  return nearest;
}

// Resolves the configuration as if the user had given this value, too. RETURNS: the error; nothing if it resolves.
std::optional<ErrorText> refusal(TrainConfig config, std::map<std::string, std::string> origins, const Mentioned& size,
                                 int64_t value) {
  try {
    size.field->set(config, std::to_string(value));
    origins[size.field->key] = "flag " + size.flag;
    settle_batch(config, origins);
    settle_layout(config, origins);
    resolve(config);
  } catch (const Error& error) {
    return error.text();
  }
  return {};
}

// False if settings were changed after the sources were merged (as a launcher does for its ranks), since merging again
// would undo that.
bool is_settled(const TrainConfig& config, const std::map<std::string, std::string>& origins) {
  TrainConfig again = config;
  settle_layout(again, origins);
  const ParallelDims &a = config.parallel, &b = again.parallel;
  return a.world == b.world && a.tp == b.tp && a.pp == b.pp && a.cp == b.cp && a.ep == b.ep && a.etp == b.etp;
}

}  // namespace

ErrorText with_fitting_sizes(const TrainConfig& config, const std::map<std::string, std::string>& origins,
                             const SizeError& error) {
  ErrorText text = error.text();
  if (!is_settled(config, origins)) return text;
  const std::set<int64_t> numbers = numbers_in(text.got);
  std::vector<std::string> proven;
  std::string next;
  for (const Mentioned& size : mentioned_in(text, config)) {
    std::set<int64_t> fit;
    for (const int64_t value : candidates(size.value, numbers)) {
      const std::optional<ErrorText> other = refusal(config, origins, size, value);
      if (!other) fit.insert(value);
      if (other && next.empty() && other->what != text.what) next = other->what + " (" + other->got + ")";
      if (fit.size() == kShown) break;
    }
    std::vector<std::string> words;
    for (const int64_t value : fit) words.push_back(std::to_string(value));
    if (words.empty()) continue;
    const std::string last = words.back();
    words.pop_back();
    proven.push_back(size.flag + " " + (words.empty() ? last : join(words, ", ") + " or " + last));
  }
  if (!proven.empty() && !error.other().empty()) proven.push_back(error.other());
  if (!proven.empty())
    text.fix = "use " + join(proven, ", or ");
  else if (!next.empty())
    text.fix += "; the next to fit would be: " + next;
  return text;
}

}  // namespace ranklab
