// The sentinels of a run: each is one number that training gives, with bounds that a healthy run stays between. One
// table names them all (sentinel_table.cpp); the runtime measures (core/runtime/sentinels), and a setting changes the
// bounds. The numbers, tags and bounds follow nano-train's monitoring reference. Torch-free. Thread rule: immutable.
#pragma once
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace ranklab {

// Each has the sentinels of those before it.
enum class SentinelMode { kOff, kMinimal, kStandard, kDebug };
// What is done beside the message when a number leaves its warn bounds; beyond its stop bounds the run ends in any
// case.
enum class SentinelAction { kWarn, kDump, kCheckpoint, kStop };
enum class SentinelLevel { kNone, kWarn, kStop };

std::string_view name(SentinelMode mode);
std::string_view name(SentinelAction action);
std::string_view name(SentinelLevel level);

// A number is within them if low <= number <= high. The defaults have no end: nothing is outside.
struct SentinelBounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool holds(double value) const { return value >= low && value <= high; }
  bool open() const {
    return low == -std::numeric_limits<double>::infinity() && high == std::numeric_limits<double>::infinity();
  }
  std::string text() const;  // "below 0.5", "above 3", "outside of 0.01 to 100"; open: ""
};

struct SentinelRow {
  const char* name;     // for --sentinel
  const char* tag;      // in logs and TensorBoard; {} stands for a layer, a module or a parameter
  const char* formula;  // in words
  SentinelMode mode = SentinelMode::kMinimal;  // the least mode that measures it; kOff: any, with --watch
  SentinelBounds warn = {}, stop = {};
  SentinelAction action = SentinelAction::kWarn;
  int in_a_row = 1;  // measurements beyond the stop bounds until the run ends
};

std::span<const SentinelRow> sentinel_rows();
const SentinelRow* find_sentinel(std::string_view name);  // null: there is none

// What a run watches: the rows of its mode, with the changes of the setting `rules`: entries apart by semicolons, each
// a name and what changes for it, as in "loss_spike warn=3 stop=10 action=checkpoint; grad_norm warn=0.01..100;
// norm_rms off". A single number replaces the end that the default bounds have, or else the high one.
class SentinelRules {
 public:
  // Throws kInvalidArgument naming the entry.
  SentinelRules(SentinelMode mode, const std::string& rules);

  SentinelMode mode() const { return mode_; }
  // Whether this run measures the row.
  bool measures(std::string_view name) const;
  const SentinelRow& row(std::string_view name) const { return rows_.at(name); }  // REQUIRES: measures()
  // Whether any sentinel may take this action.
  bool acts(SentinelAction action) const;

 private:
  SentinelMode mode_;
  std::map<std::string_view, SentinelRow> rows_;
};

}  // namespace ranklab
