// The sentinels of a run. Each is one number computed during training, with bounds between which a healthy run stays.
// One table lists them all (sentinel_table.cpp); the runtime measures them (core/runtime/sentinels), and a setting can
// change the bounds. The numbers, tags and bounds follow nano-train's monitoring reference. Torch-free. Thread rule:
// immutable.
#pragma once
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace ranklab {

// Each mode includes the sentinels of the modes before it.
enum class SentinelMode { kOff, kMinimal, kStandard, kDebug };
// What happens in addition to the message when a number leaves its warn bounds. When it leaves its stop bounds, the run
// always ends.
enum class SentinelAction { kWarn, kDump, kCheckpoint, kStop };
enum class SentinelLevel { kNone, kWarn, kStop };

std::string_view name(SentinelMode mode);
std::string_view name(SentinelAction action);
std::string_view name(SentinelLevel level);

// A number is within the bounds if low <= number <= high. By default both ends are infinite, so nothing is outside.
struct SentinelBounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool holds(double value) const { return value >= low && value <= high; }
  bool open() const {
    return low == -std::numeric_limits<double>::infinity() && high == std::numeric_limits<double>::infinity();
  }
  std::string text() const;  // "below 0.5", "above 3", "outside of 0.01 to 100"; "" if both ends are infinite
};

struct SentinelRow {
  const char* name;     // for --sentinel
  const char* tag;      // in logs and TensorBoard; {} stands for a layer, a module or a parameter
  const char* formula;  // in words
  SentinelMode mode = SentinelMode::kMinimal;  // the lowest mode that measures it; kOff: in any mode, with --watch
  SentinelBounds warn = {}, stop = {};
  SentinelAction action = SentinelAction::kWarn;
  int in_a_row = 1;  // the run ends after this many consecutive measurements beyond the stop bounds
};

std::span<const SentinelRow> sentinel_rows();
const SentinelRow* find_sentinel(std::string_view name);  // null if there is none with this name

// What a run monitors: the rows of its mode, changed by the setting `rules`. Its entries are separated by semicolons;
// each is a name followed by what changes for it, as in "loss_spike warn=3 stop=10 action=checkpoint; grad_norm
// warn=0.01..100; norm_rms off". A single number replaces whichever end the default bounds have, or else the upper one.
class SentinelRules {
 public:
  // Throws kInvalidArgument naming the entry.
  SentinelRules(SentinelMode mode, const std::string& rules);

  SentinelMode mode() const { return mode_; }
  // Whether this run measures the sentinel.
  bool measures(std::string_view name) const;
  const SentinelRow& row(std::string_view name) const { return rows_.at(name); }  // REQUIRES: measures()

 private:
  SentinelMode mode_;
  std::map<std::string_view, SentinelRow> rows_;
};

}  // namespace ranklab
