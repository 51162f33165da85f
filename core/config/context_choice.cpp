#include "core/config/context_choice.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// Parts of a sequence, of which sequence parallelism splits each once more.
void check_sequence(const RunPlan& plan) {
  const ParallelDims& dims = plan.mesh.dims();
  const SequenceBalance balance = plan.config.context_split.balance;
  const int64_t sp = plan.sequence_parallel ? dims.tp : 1, chunks = sequence_divisor(dims.cp, balance) / dims.cp;
  // A rank's part has `chunks` chunks and divides by tp.
  const int64_t part = chunks % sp == 0 ? chunks : sp % chunks == 0 ? sp : chunks * sp;
  const int64_t divisor = dims.cp * part, seq = plan.config.model.seq_length;
  std::string got = strprintf("--seq-length %lld, --cp %d, --cp-balance %s", static_cast<long long>(seq), dims.cp,
                              std::string(name(balance)).c_str());
  if (sp > 1) got += strprintf(", --tp %d with sequence parallelism", dims.tp);
  RANKLAB_CHECK(seq % divisor == 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "the sequence does not divide over the context-parallel ranks", .got = got,
                .want = strprintf("a multiple of %lld, for example %lld or %lld", static_cast<long long>(divisor),
                                  static_cast<long long>(std::max(divisor, seq / divisor * divisor)),
                                  static_cast<long long>((seq / divisor + 1) * divisor)),
                .fix = "pass such a --seq-length, another --cp, or --cp-balance contiguous");
}

void check_heads(const RunPlan& plan) {
  const ModelConfig& model = plan.config.model;
  const ParallelDims& dims = plan.mesh.dims();
  const int64_t heads = model.num_attention_heads / dims.tp;
  const int64_t groups = model.mla.enabled() ? heads : std::max<int64_t>(model.query_groups() / dims.tp, 1);
  RANKLAB_CHECK(heads % dims.cp == 0 && (groups % dims.cp == 0 || dims.cp % groups == 0), ErrorKind::kInvalidArgument,
                .where = "config",
                .what = "--cp-comm-type a2a gives each rank a part of the heads, and they do not divide",
                .got = strprintf("%lld heads and %lld key/value heads of each tp rank, --cp %d",
                                 static_cast<long long>(heads), static_cast<long long>(groups), dims.cp),
                .want = "--cp x --tp that divides --num-attention-heads",
                .fix = "lower --cp or --tp, or use --cp-comm-type p2p or all_gather");
}

}  // namespace

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
  check_sequence(plan);
  if (plan.config.context_split.exchange == ContextExchange::kAllToAll) check_heads(plan);
}

}  // namespace ranklab
