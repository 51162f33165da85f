#include "core/data/batch_source.h"

#include <map>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

std::span<int64_t> row(const at::Tensor& tensor_BS, int64_t index) {
  const int64_t length = tensor_BS.size(1);
  return {tensor_BS.mutable_data_ptr<int64_t>() + index * length, static_cast<size_t>(length)};
}

}  // namespace

BatchSource::BatchSource(std::shared_ptr<const TokenDataset> dataset, BatchShape shape, uint64_t seed, BatchRamp ramp)
    : BatchSource({{std::move(dataset)}, std::make_shared<DataBlend>(std::vector<double>{1})}, shape, seed, ramp) {}

BatchSource::BatchSource(BlendedSets data, BatchShape shape, uint64_t seed, BatchRamp ramp)
    : data_(std::move(data)), shape_(shape), seed_(seed), ramp_(ramp) {
  RANKLAB_CHECK(shape.micro_batch_size > 0 && shape.num_microbatches > 0 && shape.dp_size > 0,
                ErrorKind::kInvalidArgument, .where = "data", .what = "every batch dimension must be positive",
                .got = "micro batch " + std::to_string(shape.micro_batch_size) + ", microbatches " +
                       std::to_string(shape.num_microbatches) + ", dp " + std::to_string(shape.dp_size));
}

void BatchSource::seek(int64_t step, int64_t consumed_samples) {
  cursor_step_ = step;
  cursor_samples_ = consumed_samples;
}

int64_t BatchSource::samples_before(int64_t step) const {
  if (ramp_.grows()) return cursor_samples_ + ramp_.samples_before(step) - ramp_.samples_before(cursor_step_);
  return cursor_samples_ + (step - cursor_step_) * shape_.global_batch_size();
}

BatchShape BatchSource::shape_of(int64_t step) const {
  BatchShape shape = shape_;
  if (ramp_.grows()) shape.num_microbatches = ramp_.size_of(step) / (shape.micro_batch_size * shape.dp_size);
  return shape;
}

int64_t BatchSource::first_sample(const BatchShape& shape, int64_t microbatch, int dp_rank) {
  return (dp_rank * shape.num_microbatches + microbatch) * shape.micro_batch_size;
}

TokenBatch BatchSource::empty(const BatchShape& of, int64_t microbatch, int dp_rank) const {
  RANKLAB_CHECK(microbatch >= 0 && microbatch < of.num_microbatches && dp_rank >= 0 && dp_rank < shape_.dp_size,
                ErrorKind::kInternal, .where = "data", .what = "microbatch or dp rank out of range",
                .got = "microbatch " + std::to_string(microbatch) + ", dp_rank " + std::to_string(dp_rank));
  const auto shape = {shape_.micro_batch_size, seq_length()};
  return {at::empty(shape, at::kLong), at::empty(shape, at::kLong), first_sample(of, microbatch, dp_rank)};
}

std::vector<DrawnSample> BatchSource::draw(int64_t step, int64_t microbatch, int dp_rank) const {
  const int64_t first = first_sample(shape_of(step), microbatch, dp_rank);
  std::vector<DrawnSample> drawn;
  std::map<std::pair<size_t, int64_t>, RandomPermutation> orders;  // by set and epoch
  for (const auto& [set_index, index] : data_.blend->places(samples_before(step) + first, shape_.micro_batch_size)) {
    const int64_t size = set(set_index).samples(Split::kTrain), epoch = index / size;
    // Sets of the same size are shuffled differently.
    const uint64_t key = static_cast<uint64_t>(epoch) + (static_cast<uint64_t>(set_index) << 48);
    const auto order = orders.try_emplace({set_index, epoch}, static_cast<uint64_t>(size), seed_, key).first;
    const auto sample = static_cast<int64_t>(order->second(static_cast<uint64_t>(index % size)));
    drawn.push_back({first + static_cast<int64_t>(drawn.size()), set_index, epoch, sample});
  }
  return drawn;
}

TokenBatch BatchSource::read(TokenBatch batch, const BlendedSets& sets, Split split,
                             const std::vector<DrawnSample>& drawn) const {
  int64_t j = 0;
  for (const DrawnSample& one : drawn) {
    sets.sets[one.set]->read(split, one.sample, row(batch.tokens_BS, j), row(batch.targets_BS, j));
    ++j;
  }
  return batch;
}

TokenBatch BatchSource::train(int64_t step, int64_t microbatch, int dp_rank) const {
  return read(empty(shape_of(step), microbatch, dp_rank), data_, Split::kTrain, draw(step, microbatch, dp_rank));
}

std::vector<DrawnSample> BatchSource::draw_validation(int64_t batch, int64_t microbatch, int dp_rank) const {
  RANKLAB_CHECK(has_validation(), ErrorKind::kInvalidArgument, .where = "data", .what = "there is no validation split",
                .got = "0 samples", .fix = "set --validation-fraction above 0, or pass --valid-data-path");
  const int64_t first = first_sample(shape_, microbatch, dp_rank);
  const BlendedSets& from = validation_sets();
  std::vector<DrawnSample> drawn;
  for (const auto& [set_index, index] :
       from.blend->places(batch * shape_.global_batch_size() + first, shape_.micro_batch_size)) {
    const int64_t size = from.sets[set_index]->samples(validation_split());
    drawn.push_back({first + static_cast<int64_t>(drawn.size()), set_index, index / size, index % size});
  }
  return drawn;
}

TokenBatch BatchSource::validation(int64_t batch, int64_t microbatch, int dp_rank) const {
  const std::vector<DrawnSample> drawn = draw_validation(batch, microbatch, dp_rank);
  return read(empty(shape_, microbatch, dp_rank), validation_sets(), validation_split(), drawn);
}

std::vector<double> BatchSource::epochs(int64_t step) const {
  const int64_t before = samples_before(step);
  const std::vector<int64_t> drawn = data_.sets.size() == 1 ? std::vector{before} : data_.blend->counts_before(before);
  std::vector<double> epochs;
  for (size_t i = 0; i < drawn.size(); ++i)
    epochs.push_back(static_cast<double>(drawn[i]) / static_cast<double>(set(i).samples(Split::kTrain)));
  return epochs;
}

}  // namespace ranklab
