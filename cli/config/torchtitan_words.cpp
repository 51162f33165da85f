#include "cli/config/torchtitan_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "cli/config/torchtitan_keys.h"
#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/files/path_type.h"
#include "core/base/text.h"
#include "core/base/toml/toml_file.h"

namespace ranklab {
namespace {

constexpr const char* kTitanWhere = "config from-torchtitan";
constexpr int64_t kMostTitan = int64_t{1} << 20;  // products of three cannot overflow
constexpr std::array kLauncher = {"nproc_per_node", "nproc-per-node", "nnodes"};

std::string text_of(const toml::node& node) {
  if (const auto text = node.value<std::string>(); node.is_string()) return *text;
  if (const toml::array* list = node.as_array()) {
    std::vector<std::string> members;
    bool of_lists = false;
    for (const toml::node& member : *list) {
      members.push_back(text_of(member));
      of_lists = of_lists || member.is_array();
    }
    return join(members, of_lists ? ";" : ",");
  }
  std::ostringstream out;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_value<decltype(value)>) out << value;
  });
  return out.str();
}

bool is_launchers(const std::string& name) { return std::ranges::find(kLauncher, name) != kLauncher.end(); }

// Distinguishes TOML files from names of programs, scripts and schedules.
bool is_file(const std::string& word) {
  for (const char* other : {".sh", ".py", ".csv"})
    if (word.ends_with(other)) return false;
  if (word.starts_with("--")) return false;
  return word.ends_with(".toml") || (word.find('/') != std::string::npos && is_there(word));
}

[[noreturn]] void refuse_value(const std::string& key, const TorchtitanWords::Given& given, const std::string& want) {
  throw Error(ErrorKind::kInvalidArgument, {.where = kTitanWhere,
                                            .what = key + " (" + given.origin + ") has the wrong type of value",
                                            .got = quote(given.text),
                                            .want = want,
                                            .fix = "correct it"});
}

}  // namespace

TorchtitanWords::TorchtitanWords(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, Given>> overrides;  // override files, wherever they stand on the line
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const size_t equals = word.find('=');
    if (word.starts_with("NGPU=")) {
      of_launcher_["NGPU"] = word.substr(equals + 1);
    } else if (word.starts_with("CONFIG_FILE=")) {
      read_file(word.substr(equals + 1));
    } else if (is_file(word)) {
      read_file(word);
    } else if (word.starts_with("--")) {
      const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
      const bool names_file = name == "job.config_file" || name == "job.config-file";
      // Behind a flag a path is its value (a folder, a tokenizer), unless its name says that it is a configuration.
      const auto is_value = [&](size_t at) {
        return at < words.size() && !words[at].starts_with("--") && (names_file || !words[at].ends_with(".toml"));
      };
      const bool follows = equals == std::string::npos && is_value(i + 1);
      const std::string value = equals != std::string::npos ? word.substr(equals + 1) : follows ? words[++i] : "true";
      if (names_file) {
        read_file(value);
      } else if (is_launchers(name)) {
        of_launcher_[name] = value;
      } else if (name.find('.') != std::string::npos) {
        std::string all = value;  // a list continues up to the next flag
        while (follows && is_value(i + 1)) all += "," + words[++i];
        overrides.push_back({name, {all, "--" + name}});
      }  // other options are torchrun's
    }
  }
  for (auto& [name, given] : overrides) add(name, std::move(given));
  RANKLAB_CHECK(!keys_.empty(), ErrorKind::kInvalidArgument, .where = kTitanWhere,
                .what = "no argument is a configuration of torchtitan", .got = quote(join(words, " ")),
                .want = "FILE.toml, or --section.key value", .fix = "write them after from-torchtitan");
  RANKLAB_CHECK(unknown_.empty(), ErrorKind::kInvalidArgument, .where = kTitanWhere,
                .what = "keys of torchtitan that are not known here", .got = join(unknown_, ", "),
                .fix = "leave out those that change neither the model nor its layout");
}

void TorchtitanWords::read_file(const std::string& path) {
  constexpr uint64_t kLargest = 1 << 20;
  const std::string text = read_whole_file(path, kLargest, {.where = kTitanWhere, .fix = "check the path"});
  const toml::table table = parse_toml(text, path, "the files in torchtitan/models/*/train_configs show how it looks");
  const auto take = [&](const auto& self, const std::string& prefix, const toml::table& of) -> void {
    for (const auto& [key, node] : of) {
      const std::string name = prefix + std::string(key.str());
      if (const toml::table* inner = node.as_table()) {
        self(self, name + ".", *inner);
      } else {
        add(name, {text_of(node), path + ":" + std::to_string(node.source().begin.line)});
      }
    }
  };
  take(take, "", table);
}

void TorchtitanWords::add(const std::string& key, Given given) {
  std::string name = key;
  std::ranges::replace(name, '-', '_');
  const size_t last = name.rfind('.') + 1;
  std::string without = name;  // "checkpoint.no_enable": enable is false
  if (name.compare(last, 3, "no_") == 0 && given.text == "true") without.erase(last, 3);
  if (without != name && find_torchtitan_key(without) != nullptr) {
    name = without;
    given.text = "false";
  }
  if (find_torchtitan_key(name) == nullptr) unknown_.push_back(name);
  keys_[name] = std::move(given);
}

const TorchtitanWords::Given* TorchtitanWords::find(const std::string& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() || found->second.text == "None" ? nullptr : &found->second;
}

std::string TorchtitanWords::text(const std::string& key, const std::string& absent) const {
  const Given* given = find(key);
  return given == nullptr ? absent : given->text;
}

std::string TorchtitanWords::choice(const std::string& key, const std::string& absent,
                                    const std::vector<std::string>& allowed) const {
  const std::string value = text(key, absent);
  if (std::ranges::find(allowed, value) == allowed.end()) refuse_value(key, *find(key), join(allowed, ", "));
  return value;
}

int64_t TorchtitanWords::number(const std::string& key, int64_t absent, int64_t least) const {
  const Given* given = find(key);
  if (given == nullptr) return absent;
  int64_t value = 0;
  const char* end = given->text.data() + given->text.size();
  const auto [at, error] = std::from_chars(given->text.data(), end, value);
  if (error != std::errc() || at != end || value < least || value > kMostTitan)
    refuse_value(key, *given, "a whole number, " + std::to_string(least) + " or more");
  return value;
}

double TorchtitanWords::real(const std::string& key, double absent) const {
  const Given* given = find(key);
  if (given == nullptr) return absent;
  char* end = nullptr;
  const double value = std::strtod(given->text.c_str(), &end);
  if (given->text.empty() || *end != '\0' || !std::isfinite(value)) refuse_value(key, *given, "a number");
  return value;
}

bool TorchtitanWords::on(const std::string& key, bool absent) const {
  const Given* given = find(key);
  if (given == nullptr) return absent;
  if (given->text == "true" || given->text == "True") return true;
  if (given->text == "false" || given->text == "False") return false;
  refuse_value(key, *given, "true or false");
}

std::optional<int64_t> TorchtitanWords::gpus() const {
  const auto count = [&](const char* name) -> std::optional<int64_t> {
    const auto found = of_launcher_.find(name);
    if (found == of_launcher_.end()) return std::nullopt;
    char* end = nullptr;
    const int64_t value = std::strtoll(found->second.c_str(), &end, 10);
    if (*end != '\0' || value < 1 || value > kMostTitan) refuse_value(name, {found->second, name}, "a number of GPUs");
    return value;
  };
  if (const auto of_node = count("NGPU")) return *of_node * count("nnodes").value_or(1);
  const auto per_node = count("nproc_per_node") ? count("nproc_per_node") : count("nproc-per-node");
  return per_node ? std::optional(*per_node * count("nnodes").value_or(1)) : std::nullopt;
}

}  // namespace ranklab
