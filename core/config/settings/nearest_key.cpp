#include "core/config/settings/nearest_key.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/config/settings/fields.h"

namespace ranklab {
namespace {

// "parallel", "tp" of "parallel.tp"; "", "tp" of "tp".
std::pair<std::string, std::string> table_and_name(const std::string& key) {
  const size_t dot = key.rfind('.');
  if (dot == std::string::npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = name.find('_', begin);
    words.push_back(name.substr(begin, end - begin));
  }
  return words;
}

std::string key_of_flag(std::string name) {
  std::ranges::replace(name, '_', '-');
  for (const ConfigField& field : config_fields())
    if (std::ranges::find(field.flags, "--" + name) != field.flags.end()) return field.key;
  return "";
}

std::string a_typo_away_in(const std::string& table, const std::string& name) {
  std::vector<std::string> names;
  for (const ConfigField& field : config_fields())
    if (const auto [its_table, its_name] = table_and_name(field.key); its_table == table) names.push_back(its_name);
  const std::string found = nearest_name(name, names);
  return found.empty() ? "" : table + "." + found;
}

// The number of letters that two words have in common at the beginning, if that is enough to make one a form of the
// other ("iterations" and "iters"); otherwise 0. Short words must be equal.
size_t common_letters(const std::string& a, const std::string& b) {
  constexpr size_t kFewest = 4;
  const auto [end, other] = std::ranges::mismatch(a, b);
  const auto same = static_cast<size_t>(end - a.begin());
  return a == b || same >= kFewest ? same : 0;
}

std::string of_same_words(const std::string& key) {
  const auto [table, name] = table_and_name(key);
  std::string best;
  size_t most = 0, rest = 0;  // letters in common, and letters of the best candidate so far that are not
  for (const ConfigField& field : config_fields()) {
    const auto [its_table, its_name] = table_and_name(field.key);
    if (its_table != table) continue;
    const std::vector<std::string> words = words_of(its_name);
    size_t common = 0;
    bool all = true;
    for (const std::string& word : words_of(name)) {
      size_t letters = 0;
      for (const std::string& own : words) letters = std::max(letters, common_letters(word, own));
      all = all && letters > 0;
      common += letters;
    }
    const size_t left = its_name.size() - std::min(common, its_name.size());
    if (!all || common < most || (common == most && left >= rest)) continue;
    best = field.key;
    most = common;
    rest = left;
  }
  return best;
}

}  // namespace

std::string nearest_config_key(const std::string& key) {
  const auto [table, name] = table_and_name(key);
  const std::string of_flag = key_of_flag(name);
  // A single word may be the name of a flag in another table by chance (trace.steps is not --steps); several words
  // hardly.
  const bool meant = table.empty() || of_flag.starts_with(table + ".") || name.find_first_of("_-") != std::string::npos;
  if (meant && !of_flag.empty()) return of_flag;
  if (std::string found = a_typo_away_in(table, name); !found.empty()) return found;
  if (std::string found = of_same_words(key); !found.empty()) return found;
  if (!of_flag.empty()) return of_flag;
  std::vector<std::string> keys;
  for (const ConfigField& field : config_fields()) keys.push_back(field.key);
  return nearest_name(key, keys);
}

}  // namespace ranklab
