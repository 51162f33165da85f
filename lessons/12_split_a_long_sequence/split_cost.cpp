#include "lessons/12_split_a_long_sequence/split_cost.h"

#include <algorithm>
#include <string>

#include "core/parallel/context/context_attention.h"
#include "core/sim/aten.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {
namespace {

constexpr int64_t kHeads = 2, kHeadDim = 64;

int64_t hops_done(const RankTrace& trace) {
  return std::ranges::count_if(
      trace.events, [](const Event& e) { return e.kind == EventKind::kCollective && e.verb == Verb::kRecv; });
}

// A rank may attend to one rank's keys in several kernels; these become one span.
void add_kernel(std::vector<GlyphSpan>& blocks, const KernelRun& kernel, const std::string& owner) {
  if (!blocks.empty() && blocks.back().glyph == owner && blocks.back().end_ns == kernel.begin_ns)
    blocks.back().end_ns = kernel.end_ns;
  else
    blocks.push_back({kernel.begin_ns, kernel.end_ns, owner});
}

void attend(RankContext& context, SequenceBalance balance, std::vector<GlyphSpan>& blocks) {
  const ContextParallel cp{&context.comm(Axis::kCp), {ContextExchange::kP2p, balance}};
  open_ring(cp);
  at::Tensor heads;
  {
    const NoCostScope no_cost;
    heads = at::ones({1, kHeads, kLongSequence / kContextRanks, kHeadDim});  // the time does not depend on the numbers
  }
  context.op_observer()->set_on_kernel([&](const KernelRun& kernel) {
    if (kernel.name != "flash_attention") return;
    const int64_t owner = (cp.rank() + cp.size() - hops_done(context.tracer().trace())) % cp.size();
    add_kernel(blocks, kernel, std::to_string(owner));
  });
  context_attention({heads, heads, heads}, {}, cp, /*recompute=*/false);
  context.op_observer()->set_on_kernel({});
}

int64_t busy_ns(const std::vector<GlyphSpan>& blocks) {
  int64_t sum = 0;
  for (const GlyphSpan& block : blocks) sum += block.end_ns - block.begin_ns;
  return sum;
}

double mean_busy_ns(const SplitCost& cost) {
  double sum = 0;
  for (const auto& blocks : cost.blocks) sum += static_cast<double>(busy_ns(blocks));
  return sum / static_cast<double>(cost.blocks.size());
}

}  // namespace

double SplitCost::max_over_mean() const {
  int64_t most = 0;
  for (const auto& of_rank : blocks) most = std::max(most, busy_ns(of_rank));
  return static_cast<double>(most) / mean_busy_ns(*this);
}

double SplitCost::useful() const { return mean_busy_ns(*this) / static_cast<double>(time_ns); }

SplitCost measure_split(SequenceBalance balance) {
  SplitCost cost;
  cost.blocks.resize(kContextRanks);
  const auto records =
      run_ranks({.dims = {.world = kContextRanks, .cp = kContextRanks}, .hardware = "laptop"},
                [&](RankContext& c) { attend(c, balance, cost.blocks[static_cast<size_t>(c.global_rank())]); });
  for (const RankRecord& record : records) cost.time_ns = std::max(cost.time_ns, record.virtual_ns);
  cost.hops = records[0].calls(Verb::kSend);
  cost.sent_kbs = static_cast<double>(records[0].sent_bytes()) /
                  static_cast<double>(kHeads * kHeadDim * kLongSequence * int64_t{sizeof(float)});
  return cost;
}

}  // namespace ranklab::lesson
