#include "lessons/02_replicas_stay_equal/replicas.h"

#include <algorithm>
#include <set>

#include "core/base/numbers/philox.h"
#include "core/sim/aten.h"

namespace ranklab::lesson {
namespace {

constexpr double kLearningRate = 0.1;

at::Tensor random_matrix(const std::string& name, int64_t first_row, int64_t rows, double scale) {
  const RandomStream stream(11, RandomPurpose::kTest, name);
  at::Tensor out = at::empty({rows, kHidden}, at::kDouble);
  double* data = out.mutable_data_ptr<double>();
  for (int64_t i = 0; i < rows * kHidden; ++i) {
    data[i] = scale * stream.normal(static_cast<uint64_t>(first_row * kHidden + i));
  }
  return out;
}

// The training on one rank.
class Replica {
 public:
  Replica(RankContext& context, const GradientPath& path)
      : context_(context), path_(path), comm_(make_comm(context.comm(Axis::kDp))), gradients_(kParameters) {
    const NoCostScope no_cost;
    const int64_t each = kSamples / context.world_size();
    input_ = random_matrix("input", context.global_rank() * each, each, 1.0);
    target_ = at::tanh(at::mm(input_, random_matrix("teacher", 0, kHidden, 0.125)));
    for (int layer = 0; layer < kLayers; ++layer) {
      weights_.push_back(random_matrix("layer " + std::to_string(layer), 0, kHidden, 0.125));
    }
    for (int layer = 0; layer < kLayers; ++layer) gradient_views_.push_back(view_of_gradient(layer));
  }

  // RETURNS: the mean loss of this rank's samples, before the update.
  double step() {
    context_.tracer().set_step(context_.tracer().step() + 1);
    make_buckets();
    const double loss = forward();
    backward();
    path_.finish(*comm_, buckets_);
    require_all_waited(*comm_);
    update();
    return loss;
  }

  uint64_t fingerprint() const {
    uint64_t hash = 0;
    for (const at::Tensor& w : weights_) hash = hash_bytes(w.const_data_ptr(), w.nbytes(), hash);
    return hash;
  }
  const std::vector<double>& gradients() const { return gradients_; }
  at::Tensor flat_weights() const {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& w : weights_) flat.push_back(w.flatten());
    return at::cat(flat);
  }

 private:
  // Gradients are stored in backward order: the last layer first.
  at::Tensor view_of_gradient(int layer) {
    double* begin = gradients_.data() + (kLayers - 1 - layer) * kHidden * kHidden;
    return at::from_blob(begin, {kHidden, kHidden}, at::kDouble);
  }

  void make_buckets() {
    constexpr size_t kElements = static_cast<size_t>(kLayersPerBucket * kHidden * kHidden);
    buckets_.clear();
    for (int b = 0; b < kLayers / kLayersPerBucket; ++b) {
      buckets_.push_back({std::span(gradients_).subspan(static_cast<size_t>(b) * kElements, kElements),
                          kLayersPerBucket, kNotStarted});
    }
  }

  void span(const char* name, int64_t begin_ns) {
    context_.tracer().record({.kind = EventKind::kCompute,
                              .name = context_.tracer().intern(name),
                              .virtual_begin_ns = begin_ns,
                              .virtual_end_ns = context_.clock().now_ns()});
  }

  double forward() {
    const int64_t begin_ns = context_.clock().now_ns();
    activations_ = {input_};
    for (const at::Tensor& w : weights_) activations_.push_back(at::tanh(at::mm(activations_.back(), w)));
    span("F", begin_ns);
    const NoCostScope no_cost;
    return (activations_.back() - target_).square().sum().item<double>() / static_cast<double>(input_.size(0));
  }

  void backward() {
    int64_t begin_ns = context_.clock().now_ns();
    at::Tensor grad = 2.0 / static_cast<double>(input_.size(0)) * (activations_.back() - target_);
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      const auto i = static_cast<size_t>(layer);
      const at::Tensor before_tanh = grad * (1 - activations_[i + 1].square());
      at::mm_out(gradient_views_[i], activations_[i].t(), before_tanh);
      grad = at::mm(before_tanh, weights_[i].t());
      if (layer % kLayersPerBucket == 0) {
        span("B", begin_ns);
        begin_ns = context_.clock().now_ns();
      }
      path_.gradient_ready(*comm_, buckets_[static_cast<size_t>((kLayers - 1 - layer) / kLayersPerBucket)]);
    }
  }

  void update() {
    const int64_t begin_ns = context_.clock().now_ns();
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i].sub_(gradient_views_[i], kLearningRate);
    span("update", begin_ns);
  }

  RankContext& context_;
  const GradientPath& path_;
  std::unique_ptr<Comm> comm_;
  std::vector<double> gradients_;
  std::vector<at::Tensor> gradient_views_;
  std::vector<Bucket> buckets_;
  at::Tensor input_, target_;
  std::vector<at::Tensor> weights_, activations_;
};

// weights[rank][step]
double spread_at(const std::vector<std::vector<at::Tensor>>& weights, size_t step) {
  double spread = 0;
  for (const auto& rank : weights) {
    spread = std::max(spread, (rank[step] - weights[0][step]).abs().max().item<double>());
  }
  return spread;
}

void average(Comm& comm, Bucket& bucket) {
  for (double& gradient : bucket.data) gradient /= comm.size();
}

}  // namespace

GradientPath no_averaging() {
  return {[](Comm&, Bucket&) {}, [](Comm&, std::span<Bucket>) {}};
}

GradientPath averaged_after_backward() {
  return {[](Comm&, Bucket&) {},
          [](Comm& comm, std::span<Bucket> buckets) {
            for (Bucket& bucket : buckets) {
              comm.all_reduce(bucket.data);
              average(comm, bucket);
            }
          }};
}

GradientPath averaged_while_backward_runs() {
  return {[](Comm& comm, Bucket& bucket) {
            if (--bucket.missing == 0) bucket.ticket = comm.start_all_reduce(bucket.data);
          },
          [](Comm& comm, std::span<Bucket> buckets) {
            for (Bucket& bucket : buckets) {
              comm.wait(bucket.ticket);
              average(comm, bucket);
            }
          }};
}

int ReplicaRun::versions(int step) const {
  const std::vector<uint64_t>& ranks = fingerprints[static_cast<size_t>(step)];
  return static_cast<int>(std::set<uint64_t>(ranks.begin(), ranks.end()).size());
}

double ReplicaRun::exposed_share() const {
  const int64_t link_ns = records[0].link_ns();
  return link_ns == 0 ? 0 : static_cast<double>(records[0].exposed_ns) / static_cast<double>(link_ns);
}

ReplicaRun train_replicas(int ranks, int steps, const GradientPath& path, const ExerciseLibrary* exercise) {
  const auto n = static_cast<size_t>(ranks);
  ReplicaRun run;
  run.losses.assign(static_cast<size_t>(steps), 0.0);
  run.fingerprints.assign(static_cast<size_t>(steps), std::vector<uint64_t>(n));
  run.first_gradients.resize(n);
  std::vector<std::vector<double>> losses(n, run.losses);
  std::vector<std::vector<at::Tensor>> weights(n);
  run.records = run_ranks({.dims = {.world = ranks}, .hardware = "laptop", .exercise = exercise}, [&](RankContext& c) {
    const auto rank = static_cast<size_t>(c.global_rank());
    Replica replica(c, path);
    for (size_t step = 0; step < run.losses.size(); ++step) {
      losses[rank][step] = replica.step();
      run.fingerprints[step][rank] = replica.fingerprint();
      if (step == 0) run.first_gradients[rank] = replica.gradients();
      const NoCostScope no_cost;
      weights[rank].push_back(replica.flat_weights());
    }
  });
  for (const auto& mine : losses) {
    for (size_t step = 0; step < mine.size(); ++step) run.losses[step] += mine[step] / ranks;
  }
  for (size_t step = 0; step < run.losses.size(); ++step) run.spreads.push_back(spread_at(weights, step));
  return run;
}

}  // namespace ranklab::lesson
