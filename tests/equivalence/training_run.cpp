#include "tests/equivalence/training_run.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>

#include "core/base/philox.h"
#include "core/base/text.h"
#include "core/model/transformer.h"
#include "core/optim/grad_clip.h"
#include "core/optim/optimizer.h"
#include "core/sim/aten.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

constexpr double kClip = 0.05;  // below every norm seen, so that clipping is part of the comparison
constexpr double kLearningRate = 3e-4;
// AdamW's first update is g / (|g| + epsilon). Where a gradient is zero but for rounding (a key bias, which softmax
// does not see), a tiny epsilon would turn that rounding into a full step; the gradients themselves are compared
// beforehand.
constexpr double kAdamEpsilon = 1e-6;

// Sequence `sample` of a step. Later samples have fewer counted targets and the last one has none, so a mean of means
// would show.
Batch batch_of(const TrainingRun& run, int64_t step, int64_t first_sample, int64_t count) {
  const int64_t seq = run.model.seq_length;
  const RandomStream stream(99, RandomPurpose::kTest, "tokens", static_cast<uint64_t>(step));
  at::Tensor tokens = at::empty({count, seq + 1}, at::kLong);
  at::Tensor ignored = at::zeros({count, seq}, at::kBool);
  for (int64_t b = 0; b < count; ++b) {
    const int64_t sample = first_sample + b;
    for (int64_t s = 0; s <= seq; ++s) {
      const auto element = static_cast<uint64_t>(sample * (seq + 1) + s);
      tokens[b][s] = static_cast<int64_t>(stream.below(element, static_cast<uint64_t>(run.model.vocab_size)));
    }
    const int64_t counted = seq - sample * seq / std::max<int64_t>(1, run.global_batch - 1);
    ignored[b].narrow(0, counted, seq - counted).fill_(true);
  }
  return {.tokens_BS = tokens.narrow(1, 0, seq).contiguous(),
          .targets_BS = tokens.narrow(1, 1, seq).masked_fill(ignored, -100),
          .first_sample = first_sample,
          .step = step};
}

int64_t counted_tokens(const TrainingRun& run) {
  return batch_of(run, 0, 0, run.global_batch).targets_BS.ne(-100).sum().item<int64_t>();
}

int64_t fingerprint(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().contiguous();
  return static_cast<int64_t>(hash_bytes(dense.const_data_ptr(), dense.nbytes()));
}

// One rank of the run.
class Trainer {
 public:
  Trainer(const TrainingRun& run, RankContext& context, TrainingRecord& record, std::mutex& mutex)
      : run_(run),
        context_(context),
        record_(record),
        mutex_(mutex),
        model_(make_transformer(run.model, context,
                                {.sequence_parallel = run.sequence_parallel, .seed = 42, .dtype = run.dtype})),
        parameters_(model_->registry().parameters()),
        optimizer_(run.optimizer == TestedOptimizer::kAdamW
                       ? make_adamw(parameters_, {.epsilon = kAdamEpsilon})
                       : make_sgd(parameters_, {.momentum = 0.9, .weight_decay = 0.01})),
        reducer_(parameters_, context.comm(Axis::kDp), &context.comm(Axis::kTp),
                 {.bucket_bytes = 4096, .overlap = run.overlap, .accumulation = run.accumulation}) {}

  void train() {
    model_->set_training(false);
    const at::Tensor logits = model_->logits(batch_of(run_, 0, 0, run_.global_batch));
    if (context_.global_rank() == 0) record_.logits = logits;
    model_->set_training(true);
    for (int step = 0; step < run_.steps; ++step) {
      StepRecord result;
      result.loss = forward_backward(step);
      check_gradients(step);
      collect(result.grads, [](const Parameter& p) { return p.data.grad(); });
      result.grad_norm = clip_grad_norm(parameters_, context_, kClip);
      expect_equal("grad norm", step, Axis::kWorld, std::bit_cast<int64_t>(result.grad_norm));
      optimizer_->step(run_.optimizer == TestedOptimizer::kAdamW ? kLearningRate : 100 * kLearningRate);
      collect(result.weights, [](const Parameter& p) { return p.data.detach(); });
      for (const Parameter* p : parameters_) check_replicas(p->name, step, *p, p->data);
      if (context_.global_rank() == 0) store(step, std::move(result));
      context_.comm(Axis::kWorld).barrier();
    }
  }

 private:
  double forward_backward(int step) {
    const int64_t each = run_.global_batch / (run_.dp * run_.microbatches);
    const auto tokens = static_cast<double>(counted_tokens(run_));
    double loss = 0;
    reducer_.begin_step(run_.microbatches);
    for (int mb = 0; mb < run_.microbatches; ++mb) {
      const int64_t first = (context_.coordinate(Axis::kDp) * run_.microbatches + mb) * each;
      const Batch batch = batch_of(run_, step, first, each);
      expect_equal("tokens", step, Axis::kTp, fingerprint(batch.tokens_BS));
      reducer_.begin_microbatch(mb);
      const at::Tensor sum = model_->loss_sum(batch);
      torch::autograd::backward({sum / tokens}, {});
      reducer_.end_microbatch(mb);
      loss += sum.item<double>();
    }
    reducer_.finish();
    return context_.comm(Axis::kDp).all_reduce(at::full({1}, loss, at::kDouble)).item<double>() / tokens;
  }

  // Every member of the group must hold the same 64 bits.
  void expect_equal(const std::string& what, int step, Axis axis, int64_t bits) {
    const at::Tensor all = context_.comm(axis).all_gather(at::full({1}, bits, at::kLong));
    if (all.eq(bits).all().item<bool>()) return;
    const std::lock_guard lock(mutex_);
    record_.faults.push_back(what + " differ over " + std::string(name(axis)) + " at step " + std::to_string(step));
  }

  void check_replicas(const std::string& what, int step, const Parameter& p, const at::Tensor& tensor) {
    expect_equal(what, step, Axis::kDp, fingerprint(tensor));
    if (p.partition.replicated()) expect_equal(what, step, Axis::kTp, fingerprint(tensor));
  }

  void check_gradients(int step) {
    for (const Parameter* p : parameters_) check_replicas("grad of " + p->name, step, *p, p->data.grad());
  }

  // The global tensor, with padding rows; dp rank 0 of each tp rank writes its ranges.
  template <typename F>
  void collect(Tensors& out, const F& tensor_of) {
    for (const Parameter* p : parameters_) {
      const at::Tensor local = tensor_of(*p);
      if (context_.coordinate(Axis::kDp) != 0) continue;
      if (p->partition.replicated()) {
        if (context_.coordinate(Axis::kTp) == 0) out[p->name] = local.clone();
        continue;
      }
      put_ranges(*p, local);
    }
    context_.comm(Axis::kWorld).barrier();
    if (context_.global_rank() == 0) {
      for (auto& [parameter, tensor] : shared_) out[parameter] = tensor.clone();
    }
    context_.comm(Axis::kWorld).barrier();
  }

  void put_ranges(const Parameter& p, const at::Tensor& local) {
    const std::lock_guard lock(mutex_);
    at::Tensor& whole = shared_[p.name];
    if (!whole.defined()) {
      auto shape = p.partition.global_shape;
      auto& length = shape[static_cast<size_t>(p.partition.dim)];
      length = std::max(length, local.size(p.partition.dim) * (p.partition.ranges.size() == 1 ? run_.tp : 1));
      whole = at::zeros(shape, local.options().requires_grad(false));
    }
    const at::NoGradGuard no_grad;
    int64_t at = 0;
    for (const auto& [begin, end] : p.partition.ranges) {
      whole.narrow(p.partition.dim, begin, end - begin).copy_(local.narrow(p.partition.dim, at, end - begin));
      at += end - begin;
    }
  }

  void store(int step, StepRecord result) {
    // Gradients and weights of the first and the last step are enough; of the others the loss and norm.
    if (step != 0 && step + 1 != run_.steps) {
      result.grads.clear();
      result.weights.clear();
    }
    record_.steps.push_back(std::move(result));
  }

  const TrainingRun& run_;
  RankContext& context_;
  TrainingRecord& record_;
  std::mutex& mutex_;
  std::unique_ptr<CausalLm> model_;
  std::vector<Parameter*> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  GradReducer reducer_;

 public:
  static Tensors shared_;  // where the ranks of the running world put their shards; one run at a time
};
Tensors Trainer::shared_;

}  // namespace

TrainingRecord train(const TrainingRun& run) {
  TrainingRecord record;
  std::mutex mutex;
  Trainer::shared_.clear();
  ParallelDims dims = dims_of(run.dp, run.tp);
  dims.kv_copies = run.model.kv_copies(run.tp);
  run_ranks(dims, [&](RankContext& context) { Trainer(run, context, record, mutex).train(); });
  return record;
}

}  // namespace ranklab
