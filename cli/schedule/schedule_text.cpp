#include "cli/schedule/schedule_text.h"

#include <algorithm>
#include <array>

#include "cli/common/table.h"
#include "cli/schedule/plain_number.h"
#include "core/base/counted.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr int kTableRanks = 8;
constexpr int kTableMicrobatches = 32;
constexpr int kShownScheduleRanks = 16;
constexpr std::array kCauses = {IdleCause::kWarmUp, IdleCause::kDependency, IdleCause::kMessage, IdleCause::kDrain};

int64_t action_count(const Schedule& schedule) {
  int64_t count = 0;
  for (const auto& actions : schedule.ranks) count += static_cast<int64_t>(actions.size());
  return count;
}

double peak_of(const ScheduleProof& proof) {
  double peak = 0;
  for (const StageMemory& memory : proof.memory) peak = std::max(peak, memory.peak_activations);
  return peak;
}

double idle_of(const std::vector<Idle>& idle, IdleCause cause) {
  double sum = 0;
  for (const Idle& one : idle) sum += one.cause == cause ? one.end - one.begin : 0;
  return sum;
}

std::string percent(double fraction) { return strprintf("%.2f %%", 100 * fraction); }

// The longest time that a rank waited for another rank's work, excluding warm-up.
std::string longest_wait(const PipelineTimeline& line, bool microseconds) {
  const Idle* longest = nullptr;
  size_t waiter = 0;
  for (size_t rank = 0; rank < line.idle.size(); ++rank) {
    for (const Idle& one : line.idle[rank]) {
      if (one.cause != IdleCause::kDependency) continue;
      if (longest != nullptr && one.end - one.begin <= longest->end - longest->begin) continue;
      longest = &one;
      waiter = rank;
    }
  }
  if (longest == nullptr) return "none";
  return strprintf(
      "rank %zu, from %s to %s, for %s of rank %d", waiter, schedule_time(longest->begin, microseconds).c_str(),
      schedule_time(longest->end, microseconds).c_str(), to_text(longest->waits_for).c_str(), longest->waits_for_rank);
}

std::string rank_row(const LoadedSchedule& loaded, int64_t bytes, const PipelineTimeline& line, size_t rank) {
  double idle = 0;
  for (const Idle& one : line.idle[rank]) idle += one.end - one.begin;
  // Idle times are differences of times: what is left of none is their rounding.
  const double rounding = 1e-9 * line.makespan;
  const auto time = [&](double value) {
    return schedule_time(value < rounding ? 0 : value, loaded.known.has_value(), 4);
  };
  std::string out = strprintf("  %4zu  %8s", rank, time(line.end - idle).c_str());
  for (const IdleCause cause : kCauses) out += strprintf("  %9s", time(idle_of(line.idle[rank], cause)).c_str());
  const StageMemory& memory = loaded.proof.memory[rank];
  const double sent = static_cast<double>(memory.messages_sent * bytes);
  return out + strprintf("  %11.4g  %8ld  %9s  %s\n", memory.peak_activations, static_cast<long>(memory.messages_sent),
                         human_bytes(sent).c_str(),
                         join(loaded.schedule.stages_of(static_cast<int>(rank)), " ").c_str());
}

}  // namespace

std::string schedule_table() {
  Table table({"schedule", "idea", strprintf("bubble of total, p %d m %d", kTableRanks, kTableMicrobatches),
               "peak activations", "from"});
  for (const ScheduleKind& kind : schedule_kinds()) {
    const Schedule schedule = make_schedule(kind.name, {kTableRanks, kTableMicrobatches, kind.chunks == 0 ? 2 : 1});
    table.add({"`" + std::string(kind.name) + "`", kind.about,
               percent(simulate(schedule, ScheduleCosts{}).bubble_of_total()),
               strprintf("%.4g", peak_of(verify_schedule(schedule))), kind.source});
  }
  return table.for_stdout();
}

std::string schedule_headline(const LoadedSchedule& loaded, const ScheduleOptions& options, const Style& style) {
  const Schedule& s = loaded.schedule;
  std::string out = style.bold(s.name) + ": " + counted(s.num_ranks(), "rank") + ", " +
                    counted(s.num_microbatches, "microbatch", "es");
  if (s.num_stages() != s.num_ranks()) out += ", " + counted(s.num_stages(), "stage");
  const ScheduleCosts& c = loaded.costs;
  if (!loaded.known) out += strprintf("; F %g, B %g, W %g, message %g", c.f, c.b, c.w, c.c);
  if (loaded.known) {
    const ScheduleModel& m = options.model;
    const auto time = [](double value) { return schedule_time(value, true, 4); };
    const std::string whose = m.gives_costs() ? m.preset + " in " + m.dtype() + " on " + m.hardware : options.trace;
    out += strprintf("\n  costs    of %s, on a rank: F %s, B %s, W %s%s, message %s", whose.c_str(), time(c.f).c_str(),
                     time(c.b).c_str(), time(c.w).c_str(), loaded.known->split ? "" : " (each half of BW)",
                     time(c.c).c_str());
  }
  if (c.pair_factor != 1) out += strprintf(", overlapped pairs x %g", c.pair_factor);
  return out + "\n";
}

std::string schedule_summary(const LoadedSchedule& loaded, const ScheduleOptions& options, const PipelineTimeline& line,
                             const Style& style, bool all) {
  const int64_t bytes = message_bytes(options.model);
  const bool microseconds = loaded.known.has_value();
  std::string out =
      strprintf("  time     %s, of which a rank works %s\n", schedule_time(line.makespan, microseconds).c_str(),
                schedule_time(line.ideal, microseconds).c_str());
  out += "  bubble   " + style.bold(percent(line.bubble_of_total())) + " of the total, " +
         percent(line.bubble_of_ideal()) + " of the ideal\n";
  out += "  longest wait  " + longest_wait(line, microseconds) + "\n\n";
  out += style.bold(strprintf("  rank  %8s  %9s  %9s  %9s  %9s  %11s  %8s  %9s  %s", "busy", "warm-up", "waiting",
                              "messages", "drain", "activations", "messages", "p2p bytes", "stages")) +
         "\n";
  out += style.dim(strprintf("  %4s  %8s  %9s  %9s  %9s  %9s  %11s  %8s  %9s", "", "", "idle", "idle", "idle", "idle",
                             "at most", "sent", "sent")) +
         "\n";
  const size_t ranks = line.ranks.size();
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (!all && ranks > kShownScheduleRanks && rank == kShownScheduleRanks / 2) {
      rank = ranks - kShownScheduleRanks / 2;
      out += style.dim(strprintf("  ... and %zu more (--all)", ranks - kShownScheduleRanks)) + "\n";
    }
    out += rank_row(loaded, bytes, line, rank);
  }
  return out + style.dim("  a message is " + message_text(options.model)) + "\n";
}

std::string schedule_proof_text(const LoadedSchedule& loaded, const Style& style) {
  const Schedule& s = loaded.schedule;
  std::string out =
      style.green("sound") + ": " + counted(action_count(s), "action") + " on " + counted(s.num_ranks(), "rank");
  if (loaded.file) out += std::string(", read as ") + name(loaded.file->dialect) + "'s dialect";
  out += strprintf("\n  complete      each of %d microbatches has its F, B and W in every stage it passes, once\n",
                   s.num_microbatches);
  out += "  order         nothing is used before it is made, and no ranks wait for each other in a circle\n";
  out += "  messages      " + std::to_string(loaded.proof.messages) + " between ranks";
  if (loaded.file && loaded.file->messages > 0)
    out += "; the " + std::to_string(loaded.file->messages) + " sends and receives of the file match";
  out += "\n  blocking      ";
  out += loaded.proof.blocking_safe ? "also runs when messages keep both sides waiting (batch_isend_irecv)\n"
                                    : style.yellow("needs buffered messages") + ": if both sides waited, " +
                                          loaded.proof.blocking_cycle + "\n";
  std::vector<std::string> peaks;
  for (const StageMemory& memory : loaded.proof.memory) peaks.push_back(strprintf("%.4g", memory.peak_activations));
  const size_t shown = std::min<size_t>(peaks.size(), 2 * kShownScheduleRanks);
  out += "  activations   at most " + join(std::span(peaks).first(shown), " ") + (shown < peaks.size() ? " ..." : "");
  return out + ", rank by rank\n";
}

std::string schedule_comparison(const std::vector<ComparedSchedule>& all, const Style& style) {
  size_t width = 8;
  for (const ComparedSchedule& one : all) width = std::max(width, one.loaded.schedule.name.size());
  const int columns = static_cast<int>(width);
  std::string out = style.bold(strprintf("  %-*s  %10s  %9s  %9s  %11s  %8s", columns, "schedule", "time", "of total",
                                         "of ideal", "activations", "messages")) +
                    "\n";
  for (const ComparedSchedule& one : all) {
    out += strprintf("  %-*s  %10s  %9s  %9s  %11.4g  %8ld\n", columns, one.loaded.schedule.name.c_str(),
                     schedule_time(one.line.makespan, one.loaded.known.has_value()).c_str(),
                     percent(one.line.bubble_of_total()).c_str(), percent(one.line.bubble_of_ideal()).c_str(),
                     peak_of(one.loaded.proof), static_cast<long>(one.loaded.proof.messages));
  }
  out +=
      style.dim("  times and bubbles are of the rank that takes longest, from its first start to its last end") + "\n";
  for (const ComparedSchedule& one : all) {
    if (one.line.end <= one.line.makespan * (1 + 1e-9)) continue;
    const std::string end = schedule_time(one.line.end, one.loaded.known.has_value());
    out +=
        style.dim("  " + one.loaded.schedule.name + " ends at " + end + ": its ranks start one after another") + "\n";
  }
  return out;
}

}  // namespace ranklab
