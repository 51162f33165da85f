#include "lessons/02_replicas_stay_equal/replica.h"

#include <string>

#include "core/base/numbers/philox.h"
#include "core/sim/aten.h"

namespace ranklab::lesson {
namespace {

constexpr double kLearningRate = 0.1;
constexpr int64_t kLayerSize = kHidden * kHidden;

at::Tensor random_matrix(const std::string& name, int64_t first_row, int64_t rows, double scale) {
  const RandomStream stream(11, RandomPurpose::kTest, name);
  at::Tensor out = at::empty({rows, kHidden}, at::kDouble);
  double* data = out.mutable_data_ptr<double>();
  for (int64_t i = 0; i < rows * kHidden; ++i) {
    data[i] = scale * stream.normal(static_cast<uint64_t>(first_row * kHidden + i));
  }
  return out;
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

Replica::Replica(RankContext& context, const GradientPath& path, int part, int parts)
    : context_(context),
      path_(path),
      comm_(make_comm(context.comm(Axis::kDp))),
      weights_(kParameters),
      gradients_(kParameters) {
  const NoCostScope no_cost;
  samples_ = make_samples(part, parts);
  for (int layer = 0; layer < kLayers; ++layer) {
    double* begin = weights_.data() + layer * kLayerSize;
    weight_views_.push_back(at::from_blob(begin, {kHidden, kHidden}, at::kDouble));
    weight_views_.back().copy_(random_matrix("layer " + std::to_string(layer), 0, kHidden, 0.125));
    gradient_views_.push_back(view_of_gradient(layer));
  }
}

double Replica::step() {
  context_.tracer().set_step(context_.tracer().step() + 1);
  make_buckets();
  forward();
  const double loss = mean_loss(activations_.back(), samples_);
  backward();
  path_.finish(*comm_, buckets_);
  require_all_waited(*comm_);
  update();
  return loss;
}

double Replica::loss_of_all_samples() {
  const NoCostScope no_cost;
  if (!all_samples_.input.defined()) all_samples_ = make_samples(0, 1);
  at::Tensor output = all_samples_.input;
  for (const at::Tensor& w : weight_views_) output = at::tanh(at::mm(output, w));
  return mean_loss(output, all_samples_);
}

Replica::Samples Replica::make_samples(int part, int parts) {
  const int64_t each = kSamples / parts;
  const at::Tensor input = random_matrix("input", part * each, each, 1.0);
  return {input, at::tanh(at::mm(input, random_matrix("teacher", 0, kHidden, 0.125)))};
}

double Replica::mean_loss(const at::Tensor& output, const Samples& samples) {
  const NoCostScope no_cost;
  return (output - samples.target).square().sum().item<double>() / static_cast<double>(output.size(0));
}

// Gradients are stored in backward order: the last layer first.
at::Tensor Replica::view_of_gradient(int layer) {
  return at::from_blob(gradients_.data() + (kLayers - 1 - layer) * kLayerSize, {kHidden, kHidden}, at::kDouble);
}

void Replica::make_buckets() {
  constexpr size_t kElements = static_cast<size_t>(kLayersPerBucket * kLayerSize);
  buckets_.clear();
  for (int b = 0; b < kLayers / kLayersPerBucket; ++b) {
    buckets_.push_back(
        {std::span(gradients_).subspan(static_cast<size_t>(b) * kElements, kElements), kLayersPerBucket, kNotStarted});
  }
}

void Replica::span(const char* name, int64_t begin_ns) {
  context_.tracer().record({.kind = EventKind::kCompute,
                            .name = context_.tracer().intern(name),
                            .virtual_begin_ns = begin_ns,
                            .virtual_end_ns = context_.clock().now_ns()});
}

void Replica::forward() {
  const int64_t begin_ns = context_.clock().now_ns();
  activations_ = {samples_.input};
  for (const at::Tensor& w : weight_views_) activations_.push_back(at::tanh(at::mm(activations_.back(), w)));
  span("F", begin_ns);
}

void Replica::backward() {
  int64_t begin_ns = context_.clock().now_ns();
  at::Tensor grad = 2.0 / static_cast<double>(samples_.input.size(0)) * (activations_.back() - samples_.target);
  for (int layer = kLayers - 1; layer >= 0; --layer) {
    const auto i = static_cast<size_t>(layer);
    const at::Tensor before_tanh = grad * (1 - activations_[i + 1].square());
    at::mm_out(gradient_views_[i], activations_[i].t(), before_tanh);
    grad = at::mm(before_tanh, weight_views_[i].t());
    if (layer % kLayersPerBucket == 0) {
      span("B", begin_ns);
      begin_ns = context_.clock().now_ns();
    }
    path_.gradient_ready(*comm_, buckets_[static_cast<size_t>((kLayers - 1 - layer) / kLayersPerBucket)]);
  }
}

void Replica::update() {
  const int64_t begin_ns = context_.clock().now_ns();
  for (size_t i = 0; i < weight_views_.size(); ++i) weight_views_[i].sub_(gradient_views_[i], kLearningRate);
  span("update", begin_ns);
}

}  // namespace ranklab::lesson
