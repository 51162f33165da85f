#include "core/runtime/text/score_tokens.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/precision/precision_policy.h"
#include "core/runtime/text/run_scorer.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// Number of positions whose softmax is computed at once; all positions of a long sequence would take twice the memory
// of its logits in fp64.
constexpr int64_t kPositions = 256;

double sum_of(const at::Tensor& logits_SV, const ScoreRequest& request) {
  const auto last = static_cast<int64_t>(request.tokens.size());
  double sum = 0;
  for (int64_t begin = request.first; begin < last; begin += kPositions) {
    const int64_t count = std::min(kPositions, last - begin);
    const at::Tensor log_p =
        logits_SV.narrow(0, begin - 1, count).to(at::kCPU, at::kDouble).log_softmax(1).contiguous();
    const double* row = log_p.const_data_ptr<double>();
    for (int64_t i = 0; i < count; ++i, row += log_p.size(1))
      if (request.scores(begin + i)) sum += row[request.tokens[static_cast<size_t>(begin + i)]];
  }
  return sum;
}

// The tokens of some requests, as rows of equal length.
at::Tensor rows_of(std::span<const ScoreRequest> requests) {
  size_t longest = 0;
  for (const ScoreRequest& request : requests) longest = std::max(longest, request.tokens.size() - 1);
  // Attention is causal, so padding after a row's end does not change what precedes it.
  at::Tensor tokens_BS = at::zeros({static_cast<int64_t>(requests.size()), static_cast<int64_t>(longest)}, at::kLong);
  int64_t* row = tokens_BS.mutable_data_ptr<int64_t>();
  for (const ScoreRequest& request : requests) {
    std::copy(request.tokens.begin(), request.tokens.end() - 1, row);
    row += longest;
  }
  return tokens_BS;
}

// Whether a row's results depend on the other rows, because a quantization scale covers a whole tensor.
bool rows_meet(const RunPlan& plan) {
  if (!plan.precision) return false;
  const LinearPrecision& linear = plan.precision->recipe().linear;
  const TensorPrecision& x = linear.activation;
  const bool of_tensor = x.granularity == Granularity::kTensor || x.scale == ScaleRule::kE4M3;
  return x.quantized() && of_tensor && !scales_are_delayed(linear);
}

// How requests are distributed over replicas: per_batch at a time, to each of `replicas` replicas. Rows that must not
// affect each other are scored one at a time, and by all replicas alike if experts see the tokens of several replicas.
struct Sharing {
  size_t per_batch = 1, replicas = 1, replica = 0;
};
Sharing sharing_of(StepContext& context) {
  RankContext& ctx = context.ctx;
  const bool alone = rows_meet(context.plan);
  // Padding comes after the end of shorter rows, but it makes their sequences longer, and the rotation depends on the
  // length with these scalings.
  const RopeScalingKind turned = context.plan.config.model.rope_scaling.kind;
  const bool of_own_length = turned == RopeScalingKind::kDynamic || turned == RopeScalingKind::kLongRope;
  Sharing out;
  if (!alone && !of_own_length)
    out.per_batch = static_cast<size_t>(std::max<int64_t>(1, context.plan.micro_batch_size));
  if (alone && ctx.size(Axis::kEp) > 1) return out;
  out.replicas = static_cast<size_t>(ctx.size(ctx.replica_axis()));
  out.replica = static_cast<size_t>(ctx.coordinate(ctx.replica_axis()));
  return out;
}

void check(std::span<const ScoreRequest> requests, int64_t seq_length, int64_t vocab_size) {
  for (const ScoreRequest& request : requests) {
    const auto count = static_cast<int64_t>(request.tokens.size());
    RANKLAB_CHECK(request.first >= 1 && count >= 2 && count <= seq_length + 1, ErrorKind::kInvalidArgument,
                  .where = "eval", .what = "tokens that the model cannot score",
                  .got = std::to_string(count) + " tokens", .want = "2 to " + std::to_string(seq_length + 1),
                  .fix = "use shorter texts, or a larger --seq-length");
    for (const int64_t token : request.tokens)
      RANKLAB_CHECK(token >= 0 && token < vocab_size, ErrorKind::kInvalidArgument, .where = "eval",
                    .what = "a token outside the model's vocabulary", .got = std::to_string(token),
                    .want = "0 to " + std::to_string(vocab_size - 1), .fix = "use a model of the text's vocabulary");
  }
}

}  // namespace

int64_t ScoreRequest::scored() const {
  int64_t count = 0;
  for (int64_t i = first; i < static_cast<int64_t>(tokens.size()); ++i) count += scores(i) ? 1 : 0;
  return count;
}

std::vector<double> score_tokens(StepContext& context, std::span<const ScoreRequest> requests,
                                 const std::function<void(size_t batches, size_t of)>& done) {
  RankContext& ctx = context.ctx;
  const NoCostScope no_cost;
  check(requests, context.plan.config.model.seq_length, context.plan.config.model.vocab_size);
  const auto [per_batch, replicas, replica] = sharing_of(context);
  const size_t batches = (requests.size() + per_batch - 1) / per_batch;
  // For each replica that has its own requests, one rank contributes its results; the others contribute zeros to the
  // sum.
  const bool speaks = ctx.coordinate(Axis::kTp) == 0 && ctx.coordinate(Axis::kPp) == 0 &&
                      (replicas > 1 || ctx.coordinate(ctx.replica_axis()) == 0);
  at::Tensor sums = at::zeros({static_cast<int64_t>(requests.size())}, at::kDouble);
  for (size_t round = 0; round < batches; round += replicas) {
    // A replica without a batch of its own takes part nevertheless, because others may need its experts or shards.
    const bool own = round + replica < batches;
    const size_t first = (own ? round + replica : 0) * per_batch;
    const auto mine = requests.subspan(first, std::min(per_batch, requests.size() - first));
    const at::Tensor logits_BSV = run_logits(context, rows_of(mine).to(ctx.device()));
    for (size_t i = 0; own && speaks && i < mine.size(); ++i)
      sums.mutable_data_ptr<double>()[first + i] = sum_of(logits_BSV[static_cast<int64_t>(i)], mine[i]);
    if (done) done(std::min(round + replicas, batches), batches);
  }
  const at::Tensor all = ctx.comm(Axis::kWorld).all_reduce(sums.to(ctx.control_device())).to(at::kCPU);
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()};
}

std::vector<ScoreRequest> text_windows(std::span<const int64_t> tokens, int64_t context, int64_t stride,
                                       int64_t first) {
  std::vector<ScoreRequest> out;
  const auto count = static_cast<int64_t>(tokens.size());
  int64_t scored = first;
  for (int64_t begin = 0; scored < count; begin += stride) {
    const int64_t end = std::min(begin + context + 1, count);
    out.push_back({.tokens = tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                   .first = scored - begin});
    scored = end;
  }
  return out;
}

}  // namespace ranklab
