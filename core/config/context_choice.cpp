#include "core/config/context_choice.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/size_error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// The number by which sequence lengths must be divisible: each rank's part consists of as many equal chunks as
// `balance` needs, and its length is divisible by `sp`.
int64_t sequence_unit(int cp, int64_t sp, SequenceBalance balance) {
  return cp * std::lcm(sequence_divisor(cp, balance) / cp, sp);
}

// Sequence parallelism splits each cp rank's part of a sequence once more.
void check_sequence(const RunPlan& plan) {
  const ParallelDims& dims = plan.mesh.dims();
  const SequenceBalance balance = plan.config.context_split.balance;
  const int64_t sp = plan.sequence_parallel ? dims.tp : 1, seq = plan.config.model.seq_length;
  const int64_t divisor = sequence_unit(dims.cp, sp, balance);
  const bool contiguous = seq % sequence_unit(dims.cp, sp, SequenceBalance::kContiguous) == 0;
  std::string got = strprintf("--seq-length %lld, --cp %d, --cp-balance %s", static_cast<long long>(seq), dims.cp,
                              std::string(name(balance)).c_str());
  if (sp > 1) got += strprintf(", --tp %d with sequence parallelism", dims.tp);
  if (seq % divisor != 0)
    throw SizeError({.where = "config",
                     .what = "the sequence cannot be split evenly over the context-parallel ranks",
                     .got = got,
                     .want = strprintf("a multiple of %lld, for example %s", static_cast<long long>(divisor),
                                       nearest_multiples(seq, divisor).c_str()),
                     .fix = contiguous ? "pass such a --seq-length, another --cp, or --cp-balance contiguous"
                                       : "pass such a --seq-length, or another --cp"},
                    contiguous ? "--cp-balance contiguous" : "");
}

struct Heads {
  int64_t queries = 1, groups = 1;  // per tp rank
  // Where the queries of several ranks read the same key/value head, that head is sent to each of them.
  bool divide_by(int64_t ranks) const { return queries % ranks == 0 && (groups % ranks == 0 || ranks % groups == 0); }
};

Heads heads_of(const TrainConfig& config) {
  const ModelConfig& model = config.model;
  const int64_t queries = model.num_attention_heads / config.parallel.tp;
  if (model.mla.enabled()) return {queries, queries};
  return {queries, std::max<int64_t>(model.query_groups() / config.parallel.tp, 1)};
}

// Layers with a recurrence need whole sequences, so they exchange heads whatever the other layers do.
void check_recurrent_heads(const RunPlan& plan, const RecurrenceHeads& recurrence) {
  const auto& [layers, flag, heads] = recurrence;
  const int64_t cp = plan.config.parallel.cp, tp = plan.config.parallel.tp;
  if (heads % (cp * tp) == 0) return;
  throw SizeError({.where = "config",
                   .what = strprintf("each context-parallel rank has a part of the heads in layers with %s, and %s is "
                                     "not divisible by --tp x --cp",
                                     layers, flag),
                   .got = strprintf("%s %lld, --tp %lld, --cp %lld", flag, static_cast<long long>(heads),
                                    static_cast<long long>(tp), static_cast<long long>(cp)),
                   .want = strprintf("a multiple of %lld", static_cast<long long>(cp * tp)),
                   .fix = "lower --cp or --tp"});
}

void check_heads(const RunPlan& plan, ContextExchange exchange, int ranks) {
  if (!plan.config.context_split.uses(exchange)) return;
  const Heads heads = heads_of(plan.config);
  RANKLAB_CHECK(heads.divide_by(ranks), ErrorKind::kInvalidArgument, .where = "config",
                .what = "--cp-comm-type " + std::string(name(exchange)) +
                        " gives each rank a part of the heads, and they cannot be split evenly",
                .got = strprintf("%lld heads and %lld key/value heads of each tp rank, over %d ranks",
                                 static_cast<long long>(heads.queries), static_cast<long long>(heads.groups), ranks),
                .want = "ranks times --tp that divides --num-attention-heads",
                .fix = "lower --cp or --tp, or use --cp-comm-type p2p or all_gather");
}

void check_layers(const RunPlan& plan) {
  const auto given = static_cast<int64_t>(plan.config.context_split.by_layer.size());
  const int64_t layers = plan.config.model.num_layers;
  RANKLAB_CHECK(
      given == 0 || given == layers, ErrorKind::kInvalidArgument, .where = "config",
      .what = "the length of the list --cp-comm-type is not the number of layers",
      .got = strprintf("%lld words, --num-layers %lld", static_cast<long long>(given), static_cast<long long>(layers)),
      .want = "one word for all layers, or one for each", .fix = "pass such a list, as p2p,a2a,p2p,a2a");
}

}  // namespace

int head_exchange_ranks(const TrainConfig& config) {
  const int cp = config.parallel.cp;
  if (cp == 1 || !config.context_split.uses(ContextExchange::kAllToAllP2p)) return 1;
  if (const auto& sizes = config.context_sizes; !sizes.empty()) {
    RANKLAB_CHECK(sizes[0] * sizes[1] == cp, ErrorKind::kInvalidArgument, .where = "config",
                  .what = "the sizes of --hierarchical-context-parallel-sizes do not multiply to --cp",
                  .got = join(std::span<const int64_t>(sizes), " x ") + ", --cp " + std::to_string(cp),
                  .want = "sizes whose product is " + std::to_string(cp), .fix = "change one of the two");
    return static_cast<int>(sizes[0]);
  }
  const Heads heads = heads_of(config);
  for (const bool without_copies : {true, false}) {
    for (int ranks = cp / 2; ranks > 1; --ranks) {
      if (cp % ranks == 0 && heads.divide_by(ranks) && (!without_copies || heads.groups % ranks == 0)) return ranks;
    }
  }
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "config",
               .what = "no divisor of --cp divides the heads, so no group of ranks can exchange them",
               .got = strprintf("--cp %d, %lld heads and %lld key/value heads of each tp rank", cp,
                                static_cast<long long>(heads.queries), static_cast<long long>(heads.groups)),
               .want = "a divisor of --cp, above 1 and below it, that divides both",
               .fix = "pass --hierarchical-context-parallel-sizes, or use --cp-comm-type p2p, all_gather or a2a"});
}

void apply_sep(TrainConfig& config) {
  if (config.sep == 0) return;
  ParallelDims& dims = config.parallel;
  const bool experts = config.model.moe.enabled();
  RANKLAB_CHECK((dims.cp == 1 || dims.cp == config.sep) && (dims.ep == 1 || (experts && dims.ep == config.sep)) &&
                    dims.tp == 1 && dims.etp == 1,
                ErrorKind::kInvalidArgument, .where = "config",
                .what = "--sep is one group for sequences and experts, and another setting makes other groups",
                .got = strprintf("--sep %d, --tp %d, --cp %d, --ep %d, --etp %d", config.sep, dims.tp, dims.cp, dims.ep,
                                 dims.etp),
                .want = "--tp 1, and --cp and --ep left out",
                .fix = "leave --sep out and give --cp, --cp-comm-type a2a and --ep themselves");
  dims.cp = config.sep;
  if (experts) dims.ep = config.sep;
  config.context_split = {ContextExchange::kAllToAll, SequenceBalance::kContiguous};
}

void check_context(const RunPlan& plan) {
  if (plan.mesh.size(Axis::kCp) == 1) return;
  check_layers(plan);
  check_sequence(plan);
  for (const RecurrenceHeads& recurrence : plan.config.model.recurrences()) check_recurrent_heads(plan, recurrence);
  check_heads(plan, ContextExchange::kAllToAll, plan.config.parallel.cp);
  check_heads(plan, ContextExchange::kAllToAllP2p, plan.config.parallel.cp_heads);
}

}  // namespace ranklab
