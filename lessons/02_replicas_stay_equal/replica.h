// One replica of a small model, for lessons 2 and 18: an 8-layer perceptron, y = tanh(x W), with plain SGD on a part of
// 1024 samples. Forward and backward are written by hand, so that the moment at which each gradient is ready is
// visible. fp64. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lessons/02_replicas_stay_equal/exercise.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {

constexpr int kLayers = 8;
constexpr int kLayersPerBucket = 2;
constexpr int64_t kHidden = 64;
constexpr int64_t kSamples = 1024;  // the global batch
constexpr int64_t kParameters = kLayers * kHidden * kHidden;

// How gradients are averaged.
struct GradientPath {
  std::function<void(Comm&, Bucket&)> gradient_ready;
  std::function<void(Comm&, std::span<Bucket>)> finish;
};
GradientPath no_averaging();
GradientPath averaged_after_backward();
GradientPath averaged_while_backward_runs();

class Replica {
 public:
  // REQUIRES: `context` and `path` outlive it. All replicas begin with equal weights; the samples are divided into
  // `parts`, of which it has number `part`.
  Replica(RankContext& context, const GradientPath& path, int part, int parts);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // RETURNS: the mean loss of its samples, before the update.
  double step();
  // RETURNS: the mean loss of all samples, also the other replicas'. Takes no virtual time.
  double loss_of_all_samples();

  Comm& comm() { return *comm_; }
  const std::vector<double>& weights() const { return weights_; }  // layer after layer
  std::span<double> mutable_weights() { return weights_; }
  const std::vector<double>& gradients() const { return gradients_; }

 private:
  struct Samples {
    at::Tensor input, target;
  };
  // Part `part` of `parts`.
  static Samples make_samples(int part, int parts);
  static double mean_loss(const at::Tensor& output, const Samples& samples);

  at::Tensor view_of_gradient(int layer);
  void make_buckets();
  void span(const char* name, int64_t begin_ns);
  void forward();
  void backward();
  void update();

  RankContext& context_;
  const GradientPath& path_;
  std::unique_ptr<Comm> comm_;
  std::vector<double> weights_, gradients_;
  std::vector<at::Tensor> weight_views_, gradient_views_;
  std::vector<Bucket> buckets_;
  Samples samples_, all_samples_;  // all: once they are asked for
  std::vector<at::Tensor> activations_;
};

}  // namespace ranklab::lesson
