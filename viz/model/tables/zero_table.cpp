#include "viz/model/tables/zero_table.h"

#include "core/base/text.h"
#include "core/base/zero_stage.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ranklab::viz {
namespace {

constexpr size_t kNumbers = 8;          // numbers in a bucket's event; newer files may have more
constexpr double kMostElements = 1e15;  // limit on the elements of a damaged file, so that products stay finite
constexpr int kMostShards = 1 << 20;

int64_t whole_number(double value, double most) {
  return std::isfinite(value) ? static_cast<int64_t>(std::clamp(value, 0.0, most)) : 0;
}

// The state, and the bucket or unit, in a name such as "zero gathered layers.3"; nothing for other events.
std::optional<std::pair<ZeroState, std::string>> state_of(const std::string& name) {
  for (size_t i = 0; i < kZeroStateEvents.size(); ++i) {
    if (name.starts_with(kZeroStateEvents[i]))
      return std::pair(static_cast<ZeroState>(i), name.substr(kZeroStateEvents[i].size()));
  }
  return std::nullopt;
}

bool is_of_gradients(ZeroState state) { return state <= ZeroState::kUpdated; }

// The parameters of a unit are gathered and freed together, in all of its buckets.
bool is_about(const std::string& label, ZeroState state, const std::string& subject) {
  return label == subject || (!is_of_gradients(state) && label.starts_with(subject + " "));
}

class ShareCollector {
 public:
  ShareCollector(const TraceStore& store, int step) : store_(store), step_(step) {}

  ZeroTable collect() {
    for (size_t rank = store_.traces().size(); rank-- > 0;) read_buckets(rank);
    for (size_t rank = 0; rank < store_.traces().size(); ++rank) read_states(rank);
    for (ZeroBucketRow& row : table_.rows) {
      for (ZeroCell& cell : row.cells)
        std::stable_sort(cell.history.begin(), cell.history.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
    }
    // Each rank records its buckets from last to first, and later ranks hold later stages, so the rows are in reverse
    // order.
    std::reverse(table_.rows.begin(), table_.rows.end());
    table_.step = step_;
    return std::move(table_);
  }

 private:
  void read_buckets(size_t rank) {
    const RankTrace& trace = store_.trace(rank);
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kInstant || event.step != step_) continue;
      const std::string& name = trace.names[event.name];
      const std::span<const double> numbers = store_.array(rank, event);
      if (!name.starts_with(kZeroBucketEvent) || numbers.size() < kNumbers) continue;
      const int64_t elements = whole_number(numbers[0], kMostElements);
      ZeroBucketRow& row = row_of(name.substr(kZeroBucketEvent.size()), elements);
      row.padding = std::min(row.elements, whole_number(numbers[1], kMostElements));
      row.shards = static_cast<int>(std::max<int64_t>(1, whole_number(numbers[2], kMostShards)));
      row.element_bytes = whole_number(numbers[4], 64);
      row.grad_bytes = numbers.size() > kNumbers ? whole_number(numbers[kNumbers], 64) : row.element_bytes;
      row.experts = numbers[6] == 1;
      row.optimizer_bytes = whole_number(numbers[7], 1024);
      table_.stage = static_cast<int>(whole_number(numbers[5], kZeroStages.size() - 1));
      row.cells[rank].present = true;
      row.cells[rank].shard =
          static_cast<int>(std::min<int64_t>(row.shards - 1, whole_number(numbers[3], kMostShards)));
    }
  }

  void read_states(size_t rank) {
    const RankTrace& trace = store_.trace(rank);
    std::map<uint32_t, std::optional<std::pair<ZeroState, std::string>>> meaning;
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kInstant || event.step != step_) continue;
      const auto [known, is_new] = meaning.try_emplace(event.name);
      if (is_new) known->second = state_of(trace.names[event.name]);
      if (!known->second) continue;
      for (ZeroBucketRow& row : table_.rows) {
        if (row.cells[rank].present && is_about(row.label, known->second->first, known->second->second))
          row.cells[rank].history.emplace_back(begin_ns(event, store_.clock()), known->second->first);
      }
    }
  }

  // Ranks of different stages may have buckets of the same name and of different sizes.
  ZeroBucketRow& row_of(const std::string& label, int64_t elements) {
    const auto [at, is_new] = index_.try_emplace({label, elements}, table_.rows.size());
    if (is_new) {
      table_.rows.push_back({.label = label, .elements = elements});
      table_.rows.back().cells.resize(store_.traces().size());
    }
    return table_.rows[at->second];
  }

  const TraceStore& store_;
  int step_;
  ZeroTable table_;
  std::map<std::pair<std::string, int64_t>, size_t> index_;
};

// The last state of one kind (parameters or gradients) up to `time_ns`.
std::optional<ZeroState> last_news(const ZeroCell& cell, int64_t time_ns, bool gradients) {
  std::optional<ZeroState> last;
  for (const auto& [when, state] : cell.history) {
    if (when > time_ns) break;
    if (is_of_gradients(state) == gradients) last = state;
  }
  return last;
}

int64_t share(int64_t whole, int shards) { return whole / std::max(shards, 1); }

const char* word(HeldParameters held) {
  switch (held) {
    case HeldParameters::kWhole:
      return "whole";
    case HeldParameters::kShard:
      return "shard";
    case HeldParameters::kGathering:
      return "gathering";
    case HeldParameters::kGathered:
      return "gathered";
  }
  return "";
}

std::string bytes(int64_t count) { return human_bytes(static_cast<double>(count)); }

std::string each(int64_t count, int64_t elements) {
  return elements > 0 ? strprintf("%.2f", static_cast<double>(count) / static_cast<double>(elements)) : "-";
}

// What each ZeRO stage would hold, for the rank that holds the most.
std::string stages_text(const TraceStore& store, const ZeroTable& table) {
  size_t fullest = 0;
  for (size_t rank = 1; rank < store.traces().size(); ++rank) {
    if (table.elements(rank) > table.elements(fullest)) fullest = rank;
  }
  std::string out = "at the update, of " + store.rank(fullest).label + "\n";
  out += strprintf("%7s %12s %12s %12s %12s %18s\n", "stage", "parameters", "gradients", "optimizer", "together",
                   "bytes a parameter");
  for (int stage = 0; stage < static_cast<int>(kZeroStages.size()); ++stage) {
    const ZeroBytes held = table.bytes_of_stage(fullest, stage);
    out += strprintf("%7s %12s %12s %12s %12s %18s\n",
                     (std::to_string(stage) + (stage == table.stage ? " (run)" : "")).c_str(),
                     bytes(held.parameters).c_str(), bytes(held.gradients).c_str(), bytes(held.optimizer).c_str(),
                     bytes(held.together()).c_str(), each(held.together(), table.elements(fullest)).c_str());
  }
  return out;
}

}  // namespace

HeldParameters ZeroBucketRow::parameters_at(size_t rank, int64_t time_ns, int stage) const {
  if (!zero_stage_row(stage).parameters || shards == 1) return HeldParameters::kWhole;
  const auto news = last_news(cells[rank], time_ns, false);
  if (news == ZeroState::kGathering) return HeldParameters::kGathering;
  return news == ZeroState::kGathered ? HeldParameters::kGathered : HeldParameters::kShard;
}

HeldGradients ZeroBucketRow::gradients_at(size_t rank, int64_t time_ns, int stage) const {
  const auto news = last_news(cells[rank], time_ns, true);
  if (news == ZeroState::kPartial) return HeldGradients::kPartial;
  if (news != ZeroState::kReduced) return HeldGradients::kNone;
  return zero_stage_row(stage).optimizer && shards > 1 ? HeldGradients::kReducedShard : HeldGradients::kReduced;
}

int64_t ZeroTable::elements(size_t rank) const {
  int64_t sum = 0;
  for (const ZeroBucketRow& row : rows) sum += row.cells[rank].present ? row.elements - row.padding : 0;
  return sum;
}

ZeroBytes ZeroTable::bytes_at(size_t rank, int64_t time_ns) const {
  ZeroBytes out;
  for (const ZeroBucketRow& row : rows) {
    if (!row.cells[rank].present) continue;
    const int64_t whole = row.elements * row.element_bytes;
    const HeldParameters parameters = row.parameters_at(rank, time_ns, stage);
    if (parameters == HeldParameters::kWhole) out.parameters += whole - row.padding * row.element_bytes;
    if (parameters != HeldParameters::kWhole) out.parameters += share(whole, row.shards);
    if (parameters == HeldParameters::kGathering || parameters == HeldParameters::kGathered) out.parameters += whole;
    const HeldGradients gradients = row.gradients_at(rank, time_ns, stage);
    const bool shard_only = gradients == HeldGradients::kReducedShard && zero_stage_row(stage).gradients;
    const int64_t whole_grads = row.elements * row.grad_bytes;
    if (gradients != HeldGradients::kNone) out.gradients += shard_only ? share(whole_grads, row.shards) : whole_grads;
    const bool shared = zero_stage_row(stage).optimizer && row.shards > 1;
    out.optimizer += share(row.elements - (shared ? 0 : row.padding), shared ? row.shards : 1) * row.optimizer_bytes;
  }
  return out;
}

ZeroBytes ZeroTable::bytes_of_stage(size_t rank, int asked) const {
  const ZeroStage& zero = zero_stage_row(asked);
  ZeroBytes out;
  for (const ZeroBucketRow& row : rows) {
    if (!row.cells[rank].present) continue;
    const int64_t elements = row.elements - row.padding;
    out.parameters += share(elements, zero.parameters ? row.shards : 1) * row.element_bytes;
    out.gradients += share(elements, zero.gradients ? row.shards : 1) * row.grad_bytes;
    out.optimizer += share(elements, zero.optimizer ? row.shards : 1) * row.optimizer_bytes;
  }
  return out;
}

ZeroTable zero_table(const TraceStore& store, int step) {
  for (const StepRange& range : store.steps()) {
    if (range.step < step) continue;
    ZeroTable table = ShareCollector(store, range.step).collect();
    if (!table.empty()) return table;
  }
  return {};
}

std::string zero_text(const TraceStore& store, const ZeroTable& table) {
  if (table.empty()) return "no buckets: the trace has no traced training step\n";
  std::string out = strprintf("ZeRO stage %d, step %d: who shards what\n", table.stage, table.step);
  size_t widest = 6;
  for (const ZeroBucketRow& row : table.rows) widest = std::max(widest, row.label.size());
  out += strprintf("%-*s %12s %9s %7s %10s %22s\n", static_cast<int>(widest), "bucket", "elements", "padding", "ranks",
                   "a shard", "parameters between uses");
  for (const ZeroBucketRow& row : table.rows) {
    const int64_t shard = row.elements / row.shards;
    const bool shared = zero_stage_row(table.stage).optimizer && row.shards > 1;
    out += strprintf("%-*s %12ld %9ld %7d %10ld %22s\n", static_cast<int>(widest), row.label.c_str(),
                     static_cast<long>(row.elements), static_cast<long>(row.padding), row.shards,
                     static_cast<long>(shared ? shard : row.elements),
                     word(zero_stage_row(table.stage).parameters && row.shards > 1 ? HeldParameters::kShard
                                                                                   : HeldParameters::kWhole));
  }
  return out + stages_text(store, table);
}

}  // namespace ranklab::viz
