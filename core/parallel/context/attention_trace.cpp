#include "core/parallel/context/attention_trace.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/comm/traced_communicator.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {
namespace {

// Backward may run on another thread than forward (autograd's, on a GPU), so the recorder is found through the
// communicator.
Tracer* recorder(const ContextParallel& cp) {
  Tracer* const tracer = cp.active() ? observers_of(*cp.comm).tracer : nullptr;
  return tracer != nullptr && tracer->wants(EventKind::kAttention) ? tracer : nullptr;
}

int64_t virtual_now_ns(const ContextParallel& cp) {
  const VirtualClock* const clock = observers_of(*cp.comm).clock;
  return clock != nullptr ? clock->now_ns() : 0;
}

Event begun(const ContextParallel& cp) {
  Event event;
  event.kind = EventKind::kAttention;
  event.virtual_begin_ns = virtual_now_ns(cp);
  event.wall_begin_ns = wall_now_ns();
  return event;
}

void record(const ContextParallel& cp, Event event, std::string chunks, AttentionPass pass,
            std::vector<double> numbers) {
  Tracer* const tracer = recorder(cp);
  if (tracer == nullptr) return;
  if (pass == AttentionPass::kForward && recomputing()) pass = AttentionPass::kRecompute;
  event.name =
      tracer->intern(std::string(kAttentionEvent).append(chunks).append(kAttentionPasses[static_cast<size_t>(pass)]));
  event.virtual_end_ns = virtual_now_ns(cp);
  event.wall_end_ns = wall_now_ns();
  tracer->record(event, std::move(numbers));
}

// "0-3,7" for 7, 0, 1, 3, 2.
std::string ranges(std::vector<int64_t> chunks) {
  std::ranges::sort(chunks);
  chunks.erase(std::ranges::unique(chunks).begin(), chunks.end());
  std::string text;
  for (size_t i = 0; i < chunks.size(); ++i) {
    size_t last = i;
    while (last + 1 < chunks.size() && chunks[last + 1] == chunks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(chunks[i]);
    if (last > i) text += (last > i + 1 ? "-" : ",") + std::to_string(chunks[last]);
    i = last;
  }
  return text;
}

std::string chunks_of(const AttentionCells& cells) {
  std::vector<int64_t> queries, keys;
  for (const AttentionCell& cell : cells.cells()) {
    queries.push_back(cell.query);
    keys.push_back(cell.key);
  }
  return "q" + ranges(std::move(queries)) + " k" + ranges(std::move(keys));
}

std::vector<double> header(int64_t positions, int64_t chunks, bool striped) {
  std::vector<double> numbers(kAttentionBlocks);
  numbers[kAttentionPositions] = static_cast<double>(positions);
  numbers[kAttentionChunks] = static_cast<double>(chunks);
  numbers[kAttentionStriped] = striped ? 1 : 0;
  return numbers;
}

struct OwnHeads {
  const Communicator* comm = nullptr;
  Event event;
  int64_t positions = 0;
  AttentionPass pass = AttentionPass::kForward;
};
// Everything between the two exchanges runs on one thread, in forward and in backward.
thread_local std::optional<OwnHeads> t_own_heads;

}  // namespace

AttentionSpan::AttentionSpan(const ContextParallel& cp, const std::vector<PositionRun>& queries,
                             const std::vector<PositionRun>& keys, AttentionPass pass, int64_t sequences)
    : cp_(cp), queries_(queries), keys_(keys), pass_(pass), sequences_(sequences) {
  if (recorder(cp) == nullptr) return;
  int64_t own = 0;
  for (const PositionRun& run : queries) own += run.count;
  cells_.emplace(own * cp.size(), cp.size() * cp.joined, cp.split.balance);
  event_ = begun(cp);
}

void AttentionSpan::add(const AttentionBlock& block) {
  if (cells_) cells_->add(queries_, keys_, block);
}

void AttentionSpan::end() {
  if (!cells_ || cells_->cells().empty()) return;
  std::vector<double> numbers = header(cells_->seq_length(), cells_->chunks(), cells_->striped());
  for (const AttentionCell& cell : cells_->cells()) {
    const double pairs = static_cast<double>(cell.pairs) / static_cast<double>(sequences_);
    numbers.insert(numbers.end(), {static_cast<double>(cell.query), static_cast<double>(cell.key), pairs});
    event_.value += pairs;
  }
  record(cp_, event_, chunks_of(*cells_), pass_, std::move(numbers));
}

void begin_own_heads(const ContextParallel& cp, int64_t positions, AttentionPass pass) {
  t_own_heads.reset();
  const bool whole = cp.split.exchange == ContextExchange::kAllToAll;  // otherwise a ring continues with a part of them
  if (whole && recorder(cp) != nullptr) t_own_heads = OwnHeads{cp.comm, begun(cp), positions, pass};
}

void end_own_heads(const ContextParallel& cp) {
  const std::optional<OwnHeads> begun = std::exchange(t_own_heads, std::nullopt);
  if (!begun || begun->comm != cp.comm) return;
  std::vector<double> numbers = header(begun->positions, 1, false);
  numbers.resize(kAttentionBlocks + kAttentionBlockNumbers);  // one block, of chunks 0 and 0
  record(cp, begun->event, std::string(kOwnHeads), begun->pass, std::move(numbers));
}

}  // namespace ranklab
