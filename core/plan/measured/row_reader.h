// Reads the values of a published run's row, named as in papers, and derives quantities from several of them. Thread
// rule: immutable.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace ranklab {

inline bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// The values of one row. Reading is lenient, because papers leave things out.
class RowReader {
 public:
  explicit RowReader(const nlohmann::json& config) : config_(config) {}

  std::optional<double> number(const char* key) const {
    const auto it = config_.find(key);
    if (it == config_.end()) return std::nullopt;
    if (it->is_number()) return it->get<double>();
    if (!it->is_string()) return std::nullopt;
    const std::string text = it->get<std::string>();  // "128" or "128K"
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string_view rest = std::string_view(text).substr(digits);
    if (digits == 0 || (!rest.empty() && rest != "K")) return std::nullopt;
    return (rest.empty() ? 1.0 : 1000.0) * std::strtod(text.c_str(), nullptr);
  }
  // A value above 0; for measured quantities, any other value means unknown.
  std::optional<double> positive(const char* key) const {
    const auto found = number(key);
    return found && *found > 0 ? found : std::nullopt;
  }
  bool has_other_than_number(const char* key) const { return has(key) && !number(key); }
  // The text as it is in the file, shortened to its beginning if it is long.
  std::string shown(const char* key) const {
    constexpr size_t kShown = 40;
    const std::string all = config_.at(key).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return all.size() > kShown ? all.substr(0, kShown) + "..." : all;
  }
  double number_or(const char* key, double otherwise) const { return number(key).value_or(otherwise); }
  std::string text(const char* key) const {
    const auto it = config_.find(key);
    return it != config_.end() && it->is_string() ? it->get<std::string>() : "";
  }
  // The words of a text like "[core_attn mlp]", or of a list.
  std::vector<std::string> words(const char* key) const {
    const auto it = config_.find(key);
    if (it == config_.end()) return {};
    std::string all = it->is_string() ? it->get<std::string>() : it->is_null() ? "" : it->dump();
    for (char& c : all)
      if (std::string_view(",[]\"'").find(c) != std::string_view::npos) c = ' ';
    std::istringstream words(all);
    return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
  }
  bool is(const char* key, bool otherwise) const {
    const auto it = config_.find(key);
    return it != config_.end() && it->is_boolean() ? it->get<bool>() : otherwise;
  }
  bool has(const char* key) const {
    const auto it = config_.find(key);
    return it != config_.end() && !it->is_null();
  }

 private:
  const nlohmann::json& config_;
};

inline double replicas_of(const RowReader& c) {
  return c.number_or("gpus", 1) / c.number_or("tp", 1) / c.number_or("pp", 1) / c.number_or("cp", 1);
}
inline double sequences_at_once(const RowReader& c) {
  return c.number_or("micro_batch", c.number_or("local_batch", 0));
}

// Sequences per step. If a row does not say, each replica is assumed to run one forward.
inline double global_batch_of(const RowReader& c) {
  const double replicas = replicas_of(c), forward = std::max(sequences_at_once(c), 1.0);
  const double said = c.number_or("global_batch", c.number_or("batch_per_dp", 0) * replicas);
  return said > 0 ? said : c.number_or("microbatches", c.number_or("grad_accum", 1)) * forward * replicas;
}

}  // namespace ranklab
