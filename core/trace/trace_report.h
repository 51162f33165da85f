// Time breakdown per rank, from its events alone. On the virtual clock a rank computes, waits for a transfer that
// compute did not hide ("exposed"), or waits for a member that had not posted ("peer wait"); the three add up to the
// total. Overlap is the fraction of communication hidden by compute (as HTA defines it). On the wall clock the waits
// are unknown and stay 0; so they do in a trace that only has phases, of which compute is unknown, too. Thread rule:
// pure.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/chrome_reader.h"
#include "core/trace/event.h"

namespace ranklab {

struct Traffic {
  int64_t calls = 0;
  int64_t busy_ns = 0;  // time on the link
  int64_t logical_bytes = 0;
  int64_t algorithm_bytes = 0;
  int64_t wire_bytes = 0;
};

struct RankSummary {
  int global_rank = 0;
  std::string label;
  int64_t events = 0;
  int64_t dropped = 0;
  int steps = 0;  // number of distinct steps
  int64_t total_ns = 0;
  bool knows_compute = true, knows_waits = true;
  int64_t compute_ns = 0;
  int64_t peer_wait_ns = 0;
  std::array<int64_t, static_cast<size_t>(Axis::kCount)> exposed_ns{};
  std::map<std::pair<Axis, Verb>, Traffic> traffic;

  int64_t exposed_total_ns() const;
  int64_t communication_ns() const;
  std::optional<double> overlap() const;  // nothing without communication, or if waits are unknown
};

std::vector<RankSummary> summarize(const TraceFile& file);
std::string format_summary(const std::vector<RankSummary>& summaries);  // a table with one line per rank, then traffic
std::string format_summary_json(const std::vector<RankSummary>& summaries);

}  // namespace ranklab
