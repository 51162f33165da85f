#include "cli/bench/bench_context.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <vector>

#include "backends/meta/meta_world.h"
#include "cli/common/json_output.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/rank_context.h"
#include "core/nn/attention/attention.h"
#include "core/nn/attention/block_attention.h"
#include "core/parallel/context/context_attention.h"
#include "core/parallel/context/head_exchange.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

struct ContextCase {
  ContextExchange exchange;
  SequenceBalance balance;
  // The useful share in per cent, for forward alone and for forward and backward: zhuzilin/ring-flash-attention,
  // README, eight H800, attention as in Llama 3.1 8B, 8,192 positions per rank.
  std::optional<std::array<double, 2>> published = std::nullopt;
};
const ContextCase kContextSplits[] = {{ContextExchange::kP2p, SequenceBalance::kContiguous, {{52.1, 53.9}}},
                                      {ContextExchange::kP2p, SequenceBalance::kZigzag, {{85.2, 90.2}}},
                                      {ContextExchange::kP2p, SequenceBalance::kStripe, {{74.4, 82.9}}},
                                      {ContextExchange::kAllGather, SequenceBalance::kZigzag},
                                      {ContextExchange::kAllToAll, SequenceBalance::kZigzag},
                                      {ContextExchange::kAllToAllP2p, SequenceBalance::kZigzag}};

struct Numbers {
  double forward = 0, backward = 0;  // elements that a rank sends

  bool operator==(const Numbers&) const = default;
};

struct ContextRow {
  ContextCase split;
  Numbers sent, formula;
  double forward_ms = 0, both_ms = 0;  // virtual time of the slowest rank
  double forward_useful = 0, both_useful = 0;
};

// The number of ranks that exchange heads with each other in a2a+p2p: the largest that divides ranks and heads.
int neighbours(const BenchContextOptions& o) {
  for (int n = o.ranks / 2; n > 1; --n)
    if (o.ranks % n == 0 && o.heads % n == 0 && o.groups % n == 0) return n;
  return 1;
}

bool runs(const BenchContextOptions& o, ContextExchange exchange) {
  if (exchange == ContextExchange::kAllToAll)
    return o.heads % o.ranks == 0 && (o.groups % o.ranks == 0 || o.ranks % o.groups == 0);
  return exchange != ContextExchange::kAllToAllP2p || neighbours(o) > 1;
}

// H and K are the widths of queries and of keys, s the total number of positions, b the number of sequences, n the
// number of ranks.
Numbers formula(const BenchContextOptions& o, ContextExchange exchange) {
  const double n = o.ranks, bs = static_cast<double>(o.batch * o.positions) * n;
  const auto query = static_cast<double>(o.heads * o.head_dim), key = static_cast<double>(o.groups * o.head_dim);
  const double keys = 2 * key * bs * (n - 1) / n;
  switch (exchange) {
    case ContextExchange::kP2p:
      return {keys, keys + 2 * key * bs};  // gradients take n hops
    case ContextExchange::kAllGather:
      return {keys, 2 * keys};
    case ContextExchange::kAllToAll: {
      const double read = std::max(key, n * static_cast<double>(o.head_dim));  // one head for each rank that reads it
      const double heads = (2 * query + 2 * read) * bs / n * (n - 1) / n;
      return {heads, heads};
    }
    case ContextExchange::kAllToAllP2p: {
      const double in = neighbours(o), out = n / in;
      const double heads = (2 * query + 2 * key) * bs / n * (in - 1) / in, hop = 2 * key * bs / n;
      return {heads + hop * (out - 1), heads + hop * (out - 1) + hop * out};
    }
  }
  return {};
}

double numbers_sent(const RankTrace& trace, size_t from) {
  double numbers = 0;
  for (size_t i = from; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == EventKind::kCollective && event.verb != Verb::kRecv && event.verb != Verb::kBarrier)
      numbers += static_cast<double>(event.algorithm_bytes) / static_cast<double>(size_bytes(event.dtype));
  }
  return numbers;
}

ContextParallel context_parallel(RankContext& context, const ContextCase& split) {
  ContextParallel cp{&context.comm(Axis::kCp), {split.exchange, split.balance}};
  if (split.exchange == ContextExchange::kAllToAllP2p) {
    cp.heads = &context.comm(Axis::kCpHeads);
    cp.ring = &context.comm(Axis::kCpRing);
  }
  open_ring(cp);
  return cp;
}

struct ContextTimes {
  Numbers sent;
  double forward_ms = 0, both_ms = 0;
  double alone_forward_ms = 0, alone_both_ms = 0;  // one GPU whose sequence has as many positions
};

class ContextBench {
 public:
  ContextBench(const BenchContextOptions& o, const ContextCase& split, RankContext& context)
      : o_(o), context_(context), cp_(context_parallel(context, split)) {}

  ContextTimes run() {
    ContextTimes result;
    const AttentionShape shape{.heads = o_.heads, .groups = o_.groups, .head_dim = o_.head_dim};
    const at::Tensor qkv = empty({o_.positions, o_.batch, (o_.heads + 2 * o_.groups) * o_.head_dim});
    alone(result);
    context_.comm(Axis::kCp).barrier();
    const double begin = now_ms();
    const size_t events = context_.tracer().trace().events.size();
    const at::Tensor x = qkv.requires_grad_(true);
    const at::Tensor out = attend(x, shape);
    result.forward_ms = now_ms() - begin;
    result.sent.forward = numbers_sent(context_.tracer().trace(), events);
    torch::autograd::backward({out}, {at::empty_like(out)});
    result.both_ms = now_ms() - begin;
    result.sent.backward = numbers_sent(context_.tracer().trace(), events) - result.sent.forward;
    return result;
  }

 private:
  double now_ms() const { return static_cast<double>(context_.clock().now_ns()) * 1e-6; }
  at::Tensor empty(std::vector<int64_t> sizes) const {
    return at::empty(sizes, at::TensorOptions(at::kBFloat16).device(context_.device()));
  }

  // Times the same kernel without other ranks.
  void alone(ContextTimes& result) const {
    const double begin = now_ms();
    const SoftmaxHeads in{empty({o_.batch, o_.heads, o_.positions, o_.head_dim}),
                          empty({o_.batch, o_.groups, o_.positions, o_.head_dim}),
                          empty({o_.batch, o_.groups, o_.positions, o_.head_dim})};
    const AttentionBlock whole{0, o_.positions, 0, o_.positions, AttentionBlock::Kind::kCausal};
    const SoftmaxedHeads out = block_attention(in, whole, {});
    result.alone_forward_ms = now_ms() - begin;
    block_attention_grad(in, out, out.out, whole, {});
    result.alone_both_ms = now_ms() - begin;
  }

  at::Tensor attend(const at::Tensor& qkv, const AttentionShape& shape) const {
    const ContextParallel heads = cp_.head_group(), keys = cp_.key_group();
    const at::Tensor own = exchange_qkv(qkv, shape, heads);
    const AttentionShape part = shape_of_one_rank(shape, heads);
    const at::Tensor out = keys.active()
                               ? context_attention(rotated_heads(own, part, {}), {score_rule(part)}, keys, false)
                               : causal_attention(own, part, {});
    return positions_of_all_heads(out, heads);
  }

  const BenchContextOptions& o_;
  RankContext& context_;
  ContextParallel cp_;
};

// FlashAttention-2 on an H100 (figures 5 and 6 of FlashAttention-3, arXiv 2407.08608, heads 128 wide, 8k positions):
// forward 333 TFLOP/s on triangles, 370 on squares, 318 backward. That code merges a block's result by a chain of
// PyTorch operations, of which TorchScript fuses some: it moves about 32 bytes an element where the kernel here
// moves 10.
std::shared_ptr<const KernelEfficiency> kernels_of(double efficiency) {
  KernelEfficiency e;
  e.sms = 132;
  e.bandwidth = 0.912;
  e.attention = {.efficiency = efficiency, .backward = 318.0 / 370, .square = 370.0 / 333};
  return std::make_shared<const KernelEfficiency>(e);
}
constexpr double kMergedBytes = 32.0 / 10;

ContextRow run_split(const BenchContextOptions& o, const ContextCase& split, const HardwareProfile& profile) {
  const int heads = split.exchange == ContextExchange::kAllToAllP2p ? neighbours(o) : 1;
  const DeviceMesh mesh(ParallelDims{.world = o.ranks, .cp = o.ranks, .cp_heads = heads});
  std::vector<int> every_rank(static_cast<size_t>(o.ranks));
  std::iota(every_rank.begin(), every_rank.end(), 0);
  std::vector<ContextTimes> ranks(every_rank.size());
  make_meta_world(every_rank)->run([&](Endpoint& endpoint) {
    RankContext context(endpoint, mesh, {.profile = &profile});
    ranks[static_cast<size_t>(endpoint.global_rank())] = ContextBench(o, split, context).run();
  });
  ContextRow row{.split = split, .sent = ranks[0].sent, .formula = formula(o, split.exchange)};
  for (const ContextTimes& rank : ranks) {
    row.forward_ms = std::max(row.forward_ms, rank.forward_ms);
    row.both_ms = std::max(row.both_ms, rank.both_ms);
  }
  // n ranks together have n times the positions, so n squared times the pairs.
  row.forward_useful = 100 * o.ranks * ranks[0].alone_forward_ms / row.forward_ms;
  row.both_useful = 100 * o.ranks * ranks[0].alone_both_ms / row.both_ms;
  return row;
}

void check_sizes(const BenchContextOptions& o) {
  RANKLAB_CHECK(o.heads % o.groups == 0 && o.positions % 2 == 0, ErrorKind::kInvalidArgument, .where = "bench cp",
                .what = "the sizes do not fit together",
                .got = strprintf("--heads %ld, --kv-heads %ld, --positions %ld", static_cast<long>(o.heads),
                                 static_cast<long>(o.groups), static_cast<long>(o.positions)),
                .want = "heads divisible by key/value heads, and an even number of positions",
                .fix = "start from the defaults: ranklab bench cp --help");
}

bool is_published(const BenchContextOptions& o) {
  return o.ranks == 8 && o.positions == 8192 && o.heads == 32 && o.groups == 8 && o.head_dim == 128 && o.batch == 1 &&
         o.hardware == "h800";
}

std::string context_head(const BenchContextOptions& o, const HardwareProfile& profile) {
  std::string out = strprintf(
      "# %d ranks with %ld positions each, %ld heads, %ld key/value heads of %ld, bf16, batch %ld; %s, attention at "
      "%.1f %% of its peak on triangles\n"
      "# sent: numbers that a rank sends to others, in millions; useful: of the ranks' time, where 100 %% is attention "
      "without other ranks\n",
      o.ranks, static_cast<long>(o.positions), static_cast<long>(o.heads), static_cast<long>(o.groups),
      static_cast<long>(o.head_dim), static_cast<long>(o.batch), profile.title.c_str(), 100 * o.efficiency);
  if (is_published(o)) out += "# published: measured by ring-flash-attention on 8 H800 (forward / with backward)\n";
  return out + strprintf("%-10s %-10s %9s %9s %9s %9s %11s %11s %8s %8s  %s\n", "exchange", "balance", "sent fwd",
                         "formula", "sent bwd", "formula", "forward", "with bwd", "useful", "with bwd",
                         is_published(o) ? "published" : "");
}

std::string context_line(const ContextRow& r, bool published) {
  std::string out = strprintf("%-10s %-10s %9.3f %9.3f %9.3f %9.3f %8.3f ms %8.3f ms %7.1f%% %7.1f%%",
                              std::string(name(r.split.exchange)).c_str(), std::string(name(r.split.balance)).c_str(),
                              r.sent.forward * 1e-6, r.formula.forward * 1e-6, r.sent.backward * 1e-6,
                              r.formula.backward * 1e-6, r.forward_ms, r.both_ms, r.forward_useful, r.both_useful);
  if (published && r.split.published)
    out += strprintf("  %.1f / %.1f", (*r.split.published)[0], (*r.split.published)[1]);
  return out + "\n";
}

nlohmann::ordered_json context_json(const ContextRow& r, bool published) {
  nlohmann::ordered_json json = {{"exchange", name(r.split.exchange)},
                                 {"balance", name(r.split.balance)},
                                 {"sent_forward", r.sent.forward},
                                 {"sent_forward_formula", r.formula.forward},
                                 {"sent_backward", r.sent.backward},
                                 {"sent_backward_formula", r.formula.backward},
                                 {"virtual_forward_ms", r.forward_ms},
                                 {"virtual_ms", r.both_ms},
                                 {"useful_forward_percent", r.forward_useful},
                                 {"useful_percent", r.both_useful}};
  if (published && r.split.published)
    json.update(
        {{"published_forward_percent", (*r.split.published)[0]}, {"published_percent", (*r.split.published)[1]}});
  return json;
}

}  // namespace

int run_bench_context(const BenchContextOptions& options) {
  check_sizes(options);
  HardwareProfile profile = load_hardware_profile(options.hardware);
  const bool published = is_published(options);
  if (!options.json) std::fputs(context_head(options, profile).c_str(), stdout);
  profile.kernels = kernels_of(options.efficiency);
  profile.software.kernels[0] = kMergedBytes;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ContextCase& split : kContextSplits) {
    if (!runs(options, split.exchange)) continue;
    const ContextRow row = run_split(options, split, profile);
    rows.push_back(context_json(row, published));
    if (!options.json) std::fputs(context_line(row, published).c_str(), stdout);
  }
  if (options.json) std::fputs(json_result({{"cp", rows}}).c_str(), stdout);
  return 0;
}

}  // namespace ranklab
