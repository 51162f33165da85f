// Converts the Chrome events of our writer to Events. Shared by the general reader (any JSON text) and the fast one
// (our writer's lines). Thread rule: one thread.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/trace/chrome_event.h"
#include "core/trace/chrome_reader.h"

namespace ranklab {

class ChromeEvents {
 public:
  // Handles a top-level value other than traceEvents.
  void section(const std::string& key, const nlohmann::json& value);
  // Handles an element of traceEvents. Throws kBadFile, or nlohmann's exceptions, when it is invalid.
  void event(const nlohmann::json& value);
  // Throws kBadFile when the file is not one of our traces, or has another version.
  void require_ours(const std::string& path) const;
  TraceFile take() { return std::move(file_); }

  TraceClock clock() const { return file_.clock; }
  // Where a rank's events are collected; null for a rank that the header does not name. Valid until the next section().
  struct Rank;
  Rank* rank(int64_t pid);
  // `array`: the event's numbers; null if it has none.
  void add(Rank& rank, std::string_view name, Event& event, std::vector<double>* array = nullptr);

  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Rank {
    size_t index = 0;
    std::unordered_map<std::string, uint32_t, NameHash, std::equal_to<>> names;
  };

 private:
  void header(const nlohmann::json& value);
  void read_field(const NamedField& named, const nlohmann::json& from, Event& event) const;
  void read_span(const nlohmann::json& value, Event& event) const;
  void read_args(const nlohmann::json& args, Event& event) const;
  std::string read_counter(const nlohmann::json& value, Event& event) const;
  void read_slice(const nlohmann::json& value, bool instant, Event& event) const;

  TraceFile file_;
  std::map<int64_t, Rank> ranks_;  // by process
  bool has_header_ = false;
};

}  // namespace ranklab
