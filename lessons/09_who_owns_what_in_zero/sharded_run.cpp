#include "lessons/09_who_owns_what_in_zero/sharded_run.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/base/numbers/philox.h"
#include "core/sim/aten.h"

namespace ranklab::lesson {
namespace {

constexpr int64_t kSamples = 64;  // in the global batch
constexpr double kRate = 0.01, kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-8, kDecay = 0.1;

using Numbers = std::vector<double>;

Numbers random_numbers(const std::string& name, size_t count, double scale, uint64_t first = 0) {
  const RandomStream stream(23, RandomPurpose::kTest, name);
  Numbers out(count);
  for (size_t i = 0; i < count; ++i) out[i] = scale * stream.normal(first + i);
  return out;
}

at::Tensor matrix(const Numbers& numbers, int64_t rows, int64_t cols) {
  return at::from_blob(const_cast<double*>(numbers.data()), {rows, cols}, at::kDouble);
}

size_t part_of(size_t elements, int size) {
  return (elements + static_cast<size_t>(size) - 1) / static_cast<size_t>(size);
}

// The update for any subset of elements (Loshchilov and Hutter 2019, arXiv 1711.05101).
class AdamW {
 public:
  void update(std::span<double> weights, std::span<const double> gradients) {
    first_.resize(weights.size()), second_.resize(weights.size());
    ++step_;
    for (size_t i = 0; i < std::min(weights.size(), gradients.size()); ++i) {
      first_[i] = kBeta1 * first_[i] + (1 - kBeta1) * gradients[i];
      second_[i] = kBeta2 * second_[i] + (1 - kBeta2) * gradients[i] * gradients[i];
      const double m = first_[i] / (1 - std::pow(kBeta1, step_)), v = second_[i] / (1 - std::pow(kBeta2, step_));
      weights[i] -= kRate * (m / (std::sqrt(v) + kEpsilon) + kDecay * weights[i]);
    }
  }
  int64_t numbers() const { return static_cast<int64_t>(first_.size() + second_.size()); }

 private:
  Numbers first_, second_;
  int step_ = 0;
};

// One layer on one rank: either the full layer, or a shard and, temporarily, the full layer.
struct Layer {
  size_t elements = 0;
  Numbers whole;
  Shard mine;
  Numbers gradient;  // full, for this rank's samples
  AdamW optimizer;
};

class Rank {
 public:
  Rank(RankContext& context, const ZeroModel& model, int stage, const ShardPath& path, ZeroRun& run)
      : context_(context),
        model_(model),
        stage_(stage),
        path_(path),
        run_(run),
        comm_(make_comm(context.comm(Axis::kDp))) {
    const NoCostScope no_cost;
    const int64_t each = kSamples / context.world_size();
    input_ =
        matrix(random_numbers("input", static_cast<size_t>(kSamples * model.outside), 1.0), kSamples, model.outside)
            .narrow(0, context.global_rank() * each, each)
            .clone();
    target_ = at::sin(input_ + input_.roll(1, 1));
    int index = 0;
    for (const int64_t elements : model.layers()) {
      Layer& layer = layers_.emplace_back();
      layer.elements = static_cast<size_t>(elements);
      layer.whole = random_numbers("layer " + std::to_string(index++), layer.elements, 0.3);
      layer.mine.elements = layer.elements;
      if (stage_ < 3) continue;
      path_.shard(comm_->rank(), comm_->size(), layer.whole, layer.mine);
      truth_.push_back(layer.whole);
      note_length(layer.mine.parameters.size(), part_of(layer.elements, comm_->size()));
      layer.mine.parameters.resize(part_of(layer.elements, comm_->size()));
      Numbers().swap(layer.whole);
    }
  }

  double step(bool first) {
    context_.tracer().set_step(context_.tracer().step() + 1);
    for (Layer& layer : layers_) layer.gradient.assign(layer.elements, 0.0);
    const double loss = forward_backward();
    for (Layer& layer : layers_) reduce(layer);
    if (first) keep_gradients();
    note_held();
    for (Layer& layer : layers_) update(layer);
    return loss;
  }

  // All layers in full. Collective.
  std::vector<Numbers> weights() {
    std::vector<Numbers> all;
    for (Layer& layer : layers_) all.push_back(stage_ < 3 ? layer.whole : together(layer.mine.parameters, layer));
    return all;
  }

 private:
  // Gathers a layer, uses it, and releases it.
  template <typename Use>
  void with(size_t index, const Use& use) {
    Layer& layer = layers_[index];
    if (stage_ == 3) {
      path_.gather(*comm_, layer.mine, layer.whole);
      note_length(layer.whole.size(), layer.elements);
      layer.whole.resize(layer.elements);
      if (first_use_) run_.gather_error = std::max(run_.gather_error, difference(layer.whole, truth_[index]));
    }
    int64_t there = 0;
    for (const Layer& one : layers_) there += static_cast<int64_t>(one.whole.capacity());
    run_.most_whole = std::max(run_.most_whole, there);
    use(layer.whole, layer.gradient);
    if (stage_ < 3) return;
    path_.release(layer.whole);
    run_.left_behind = std::max(run_.left_behind, static_cast<int64_t>(layer.whole.capacity()));
  }

  double forward_backward() {
    const int64_t d = model_.outside, h = model_.inside;
    const size_t last = model_.tied ? 0 : 2;
    first_use_ = context_.tracer().step() == 0;
    at::Tensor encoded, middle, out;
    with(0, [&](Numbers& a, Numbers&) { encoded = at::tanh(at::mm(input_, matrix(a, d, h))); });
    with(1, [&](Numbers& v, Numbers&) { middle = at::tanh(at::mm(encoded, matrix(v, h, h))); });
    with(last, [&](Numbers& b, Numbers&) { out = at::mm(middle, decoder(b)); });
    first_use_ = false;
    const at::Tensor error = out - target_;
    at::Tensor grad = error * (2.0 / static_cast<double>(kSamples));
    with(last, [&](Numbers& b, Numbers& gradient) {
      const at::Tensor own = at::mm(middle.t(), grad);
      matrix(gradient, model_.tied ? d : h, model_.tied ? h : d).add_(model_.tied ? own.t() : own);
      grad = at::mm(grad, decoder(b).t()) * (1 - middle.square());
    });
    with(1, [&](Numbers& v, Numbers& gradient) {
      matrix(gradient, h, h).add_(at::mm(encoded.t(), grad));
      grad = at::mm(grad, matrix(v, h, h).t()) * (1 - encoded.square());
    });
    with(0, [&](Numbers&, Numbers& gradient) { matrix(gradient, d, h).add_(at::mm(input_.t(), grad)); });
    const NoCostScope no_cost;
    return error.square().sum().item<double>() / static_cast<double>(kSamples);
  }

  at::Tensor decoder(const Numbers& b) const {
    return model_.tied ? matrix(b, model_.outside, model_.inside).t() : matrix(b, model_.inside, model_.outside);
  }

  void reduce(Layer& layer) {
    if (comm_->size() == 1) return;
    if (stage_ == 0) return comm_->all_reduce(layer.gradient);
    if (stage_ == 3) {
      path_.reduce(*comm_, layer.gradient, layer.mine);
      note_length(layer.mine.gradients.size(), layer.mine.parameters.size());
      layer.mine.gradients.resize(layer.mine.parameters.size());
    } else {
      straight_shards().reduce(*comm_, layer.gradient, with_room(layer));
    }
    if (stage_ > 1) Numbers().swap(layer.gradient);
  }

  Shard& with_room(Layer& layer) const {
    layer.mine.parameters.resize(part_of(layer.elements, comm_->size()));
    return layer.mine;
  }

  void update(Layer& layer) {
    if (stage_ == 0) return layer.optimizer.update(layer.whole, layer.gradient);
    if (stage_ < 3) straight_shards().shard(comm_->rank(), comm_->size(), layer.whole, layer.mine);
    layer.optimizer.update(layer.mine.parameters, layer.mine.gradients);
    if (stage_ < 3) {
      straight_shards().gather(*comm_, layer.mine, layer.whole);
      Numbers().swap(layer.mine.parameters);
    }
    Numbers().swap(layer.mine.gradients);
  }

  void note_held() {
    if (comm_->rank() != 0 || run_.parameters > 0) return;
    for (const Layer& layer : layers_) {
      const auto part = static_cast<int64_t>(part_of(layer.elements, comm_->size()));
      run_.parameters += stage_ < 3 ? static_cast<int64_t>(layer.whole.size()) : part;
      run_.gradient_numbers += stage_ < 2 ? static_cast<int64_t>(layer.elements) : part;
      run_.moments += stage_ < 1 ? static_cast<int64_t>(layer.elements) : part;
    }
  }
  void note_length(size_t got, size_t want) { run_.wrong_lengths += got == want ? 0 : 1; }

  void keep_gradients() {
    for (Layer& layer : layers_)
      run_.gradients.push_back(stage_ == 0 ? layer.gradient : together(layer.mine.gradients, layer));
  }

  // Used only by the check, so it is neither traced nor counted in the bytes.
  Numbers together(const Numbers& part, const Layer& layer) {
    const at::Tensor all = context_.comm(Axis::kWorld)
                               .all_gather(at::from_blob(const_cast<double*>(part.data()),
                                                         {static_cast<int64_t>(part.size())}, at::kDouble));
    return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + layer.elements};
  }

  static double difference(const Numbers& a, const Numbers& b) {
    double most = 0;
    for (size_t i = 0; i < b.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
  }

  RankContext& context_;
  ZeroModel model_;
  int stage_;
  const ShardPath& path_;
  ZeroRun& run_;
  std::unique_ptr<Comm> comm_;
  at::Tensor input_, target_;
  std::vector<Layer> layers_;
  std::vector<Numbers> truth_;  // initial weights
  bool first_use_ = false;
};

void add_worst(ZeroRun& run, const ZeroRun& rank) {
  run.most_whole = std::max(run.most_whole, rank.most_whole);
  run.left_behind = std::max(run.left_behind, rank.left_behind);
  run.gather_error = std::max(run.gather_error, rank.gather_error);
  run.wrong_lengths += rank.wrong_lengths;
}

}  // namespace

ShardPath straight_shards() {
  return {[](int rank, int size, std::span<const double> whole, Shard& mine) {
            const size_t part = part_of(whole.size(), size);
            const size_t begin = std::min(whole.size(), static_cast<size_t>(rank) * part);
            mine.parameters.assign(part, 0.0);
            std::ranges::copy(whole.subspan(begin, std::min(part, whole.size() - begin)), mine.parameters.begin());
          },
          [](Comm& dp, const Shard& mine, Numbers& whole) {
            whole.resize(mine.parameters.size() * static_cast<size_t>(dp.size()));
            dp.all_gather(mine.parameters, whole);
            whole.resize(mine.elements);
          },
          [](Numbers& whole) { Numbers().swap(whole); },
          [](Comm& dp, std::span<const double> gradient, Shard& mine) {
            Numbers padded(mine.parameters.size() * static_cast<size_t>(dp.size()));
            std::ranges::copy(gradient, padded.begin());
            mine.gradients.resize(mine.parameters.size());
            dp.reduce_scatter(padded, mine.gradients);
          }};
}

std::vector<int64_t> ZeroModel::layers() const {
  std::vector<int64_t> all = {outside * inside, inside * inside};
  if (!tied) all.push_back(inside * outside);
  return all;
}

int64_t ZeroModel::parameters() const {
  int64_t sum = 0;
  for (const int64_t elements : layers()) sum += elements;
  return sum;
}

int64_t ZeroRun::sent_numbers() const {
  int64_t bytes = 0;
  for (const Event& event : records[0].trace.events) {
    if (event.kind == EventKind::kCollective && event.axis == Axis::kDp) bytes += event.algorithm_bytes;
  }
  return bytes / static_cast<int64_t>(sizeof(double)) / kZeroSteps;
}

ZeroRun train_sharded(const ZeroModel& model, int ranks, int stage, const ShardPath& path,
                      const ExerciseLibrary* exercise) {
  ZeroRun run;
  run.losses.assign(kZeroSteps, 0.0);
  std::mutex mutex;
  run.records = run_ranks({.dims = {.world = ranks}, .hardware = "laptop", .exercise = exercise}, [&](RankContext& c) {
    ZeroRun own;
    std::vector<double> losses;
    Rank rank(c, model, stage, path, own);
    for (int step = 0; step < kZeroSteps; ++step) losses.push_back(rank.step(step == 0));
    std::vector<Numbers> weights = rank.weights();
    const std::lock_guard lock(mutex);
    for (size_t step = 0; step < losses.size(); ++step) run.losses[step] += losses[step];
    add_worst(run, own);
    if (c.global_rank() != 0) return;
    run.weights = std::move(weights);
    run.gradients = std::move(own.gradients);
    run.parameters = own.parameters, run.gradient_numbers = own.gradient_numbers, run.moments = own.moments;
  });
  return run;
}

}  // namespace ranklab::lesson
