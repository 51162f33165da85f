#include "core/config/settings/sentinel_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/config/settings/field_makers.h"

namespace ranklab {
namespace {

constexpr std::array<std::string_view, 4> kModes = {"off", "minimal", "standard", "debug"};
constexpr std::array<std::string_view, 4> kActions = {"warn", "dump", "checkpoint", "stop"};
constexpr std::array<std::string_view, 3> kLevels = {"fine", "warn", "stop"};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

[[noreturn]] void refuse(const std::string& entry, const std::string& what, const std::string& want,
                         const std::string& fix) {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "--sentinel", .what = what, .got = quote(entry), .want = want, .fix = fix});
}

std::vector<std::string> parts_of(const std::string& text, char apart) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(apart, begin), text.size());
    const size_t first = std::min(text.find_first_not_of(" \t\n", begin), end);
    const size_t last = text.find_last_not_of(" \t\n", end == begin ? end : end - 1);
    if (first < end) parts.push_back(text.substr(first, last - first + 1));
    begin = end + 1;
  }
  return parts;
}

// Parses one number: "3", or an end of a band such as "0.01..100", "..100" or "0.01..".
std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<SentinelBounds> bounds_of(const std::string& text, const SentinelBounds& usual) {
  if (text == "none") return SentinelBounds{};
  const size_t dots = text.find("..");
  if (dots == std::string::npos) {
    const auto value = number_of(text);
    if (!value) return std::nullopt;
    if (usual.low != -kInfinity && usual.high == kInfinity) return SentinelBounds{.low = *value};
    return SentinelBounds{.high = *value};
  }
  SentinelBounds bounds;
  const std::string low = text.substr(0, dots), high = text.substr(dots + 2);
  if (low.empty() && high.empty()) return std::nullopt;
  for (const auto& [part, end] : {std::pair{&low, &bounds.low}, std::pair{&high, &bounds.high}}) {
    if (part->empty()) continue;
    const auto value = number_of(*part);
    if (!value) return std::nullopt;
    *end = *value;
  }
  if (bounds.low > bounds.high) return std::nullopt;
  return bounds;
}

void change(SentinelRow& row, const std::string& entry, const std::string& word) {
  const size_t equals = word.find('=');
  const std::string key = word.substr(0, equals), value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (key == "warn" || key == "stop") {
    // A stop bound without ends of its own has the same ends as the warn bound.
    const SentinelBounds& usual = key == "stop" && !row.stop.open() ? row.stop : row.warn;
    const auto bounds = bounds_of(value, usual);
    if (!bounds)
      refuse(entry, quote(word) + " has no bound", "a number, LOW..HIGH with one end or both, or none",
             "as in warn=3 or warn=0.01..100");
    (key == "warn" ? row.warn : row.stop) = *bounds;
  } else if (key == "action") {
    const auto found = std::find(kActions.begin(), kActions.end(), value);
    if (found == kActions.end())
      refuse(entry, "there is no action " + quote(value), "warn, dump, checkpoint or stop", "choose one of them");
    row.action = static_cast<SentinelAction>(found - kActions.begin());
  } else if (key == "in-a-row") {
    const auto count = number_of(value);
    if (!count || *count < 1 || *count != std::floor(*count) || *count > 1e6)
      refuse(entry, quote(word) + " is not a count", "1 or more", "as in in-a-row=5");
    row.in_a_row = static_cast<int>(*count);
  } else {
    refuse(entry, "unknown word " + quote(word), "warn=, stop=, action=, in-a-row= or off", "see docs/sentinels.md");
  }
}

}  // namespace

std::string_view name(SentinelMode mode) { return kModes[static_cast<size_t>(mode)]; }
std::string_view name(SentinelAction action) { return kActions[static_cast<size_t>(action)]; }
std::string_view name(SentinelLevel level) { return kLevels[static_cast<size_t>(level)]; }

std::string SentinelBounds::text() const {
  if (open()) return "";
  if (low == -kInfinity) return "above " + fields::to_text(high);
  if (high == kInfinity) return "below " + fields::to_text(low);
  return "outside of " + fields::to_text(low) + " to " + fields::to_text(high);
}

const SentinelRow* find_sentinel(std::string_view name) {
  for (const SentinelRow& row : sentinel_rows())
    if (row.name == name) return &row;
  return nullptr;
}

SentinelRules::SentinelRules(SentinelMode mode, const std::string& rules) : mode_(mode) {
  for (const SentinelRow& row : sentinel_rows())
    if (row.mode <= mode) rows_.emplace(row.name, row);
  for (const std::string& entry : parts_of(rules, ';')) {
    const std::vector<std::string> words = parts_of(entry, ' ');
    const SentinelRow* known = find_sentinel(words[0]);
    if (known == nullptr)
      refuse(entry, "there is no sentinel " + quote(words[0]), "a name of docs/sentinels.md",
             did_you_mean(words[0], row_names(sentinel_rows()), "ranklab list sentinels names them"));
    SentinelRow row = rows_.contains(known->name) ? rows_.at(known->name) : *known;
    const bool off = words.size() == 2 && words[1] == "off";
    if (words.size() < 2)
      refuse(entry, "no change is given for " + quote(words[0]), "warn=, stop=, action=, in-a-row= or off",
             "as in " + words[0] + " warn=3");
    for (size_t i = 1; i < words.size() && !off; ++i) change(row, entry, words[i]);
    if (mode == SentinelMode::kOff && known->mode > mode)
      refuse(entry, "sentinels are off", "--sentinel-mode minimal, standard or debug",
             "add --sentinel-mode " + std::string(name(known->mode)));
    if (known->mode > mode)
      refuse(entry, "mode " + std::string(name(mode)) + " does not measure it",
             "--sentinel-mode " + std::string(name(known->mode)), "add it, or leave the entry out");
    if (off) {
      rows_.erase(known->name);
    } else {
      rows_.insert_or_assign(known->name, row);
    }
  }
}

bool SentinelRules::measures(std::string_view name) const { return rows_.contains(name); }

}  // namespace ranklab
