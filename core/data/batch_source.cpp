#include "core/data/batch_source.h"

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

std::span<int64_t> row(const at::Tensor& tensor_BS, int64_t index) {
  const int64_t length = tensor_BS.size(1);
  return {tensor_BS.mutable_data_ptr<int64_t>() + index * length, static_cast<size_t>(length)};
}

}  // namespace

BatchSource::BatchSource(std::shared_ptr<const TokenDataset> dataset, BatchShape shape, uint64_t seed, BatchRamp ramp)
    : dataset_(std::move(dataset)), shape_(shape), seed_(seed), ramp_(ramp) {
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
  const auto shape = {shape_.micro_batch_size, dataset_->seq_length()};
  return {at::empty(shape, at::kLong), at::empty(shape, at::kLong), first_sample(of, microbatch, dp_rank)};
}

std::vector<DrawnSample> BatchSource::draw(int64_t step, int64_t microbatch, int dp_rank) const {
  const int64_t size = dataset_->samples(Split::kTrain);
  std::vector<DrawnSample> drawn;
  int64_t permuted_epoch = -1;
  RandomPermutation permutation(1, 0, 0);
  for (int64_t j = 0; j < shape_.micro_batch_size; ++j) {
    const int64_t sequence = first_sample(shape_of(step), microbatch, dp_rank) + j;
    const int64_t position = samples_before(step) + sequence;
    if (position / size != permuted_epoch) {
      permuted_epoch = position / size;
      permutation = RandomPermutation(static_cast<uint64_t>(size), seed_, static_cast<uint64_t>(permuted_epoch));
    }
    const auto sample = static_cast<int64_t>(permutation(static_cast<uint64_t>(position % size)));
    drawn.push_back({.sequence = sequence, .epoch = permuted_epoch, .sample = sample});
  }
  return drawn;
}

TokenBatch BatchSource::train(int64_t step, int64_t microbatch, int dp_rank) const {
  TokenBatch batch = empty(shape_of(step), microbatch, dp_rank);
  int64_t j = 0;
  for (const DrawnSample& drawn : draw(step, microbatch, dp_rank)) {
    dataset_->read(Split::kTrain, drawn.sample, row(batch.tokens_BS, j), row(batch.targets_BS, j));
    ++j;
  }
  return batch;
}

TokenBatch BatchSource::validation(int64_t index, int64_t microbatch, int dp_rank) const {
  const int64_t size = dataset_->samples(Split::kValidation);
  RANKLAB_CHECK(size > 0, ErrorKind::kInvalidArgument, .where = "data", .what = "there is no validation split",
                .got = "0 samples", .fix = "set --validation-fraction above 0");
  TokenBatch batch = empty(shape_, microbatch, dp_rank);
  for (int64_t j = 0; j < shape_.micro_batch_size; ++j) {
    const int64_t position = index * shape_.global_batch_size() + batch.first_sample + j;
    dataset_->read(Split::kValidation, position % size, row(batch.tokens_BS, j), row(batch.targets_BS, j));
  }
  return batch;
}

double BatchSource::epoch(int64_t step) const {
  return static_cast<double>(samples_before(step)) / static_cast<double>(dataset_->samples(Split::kTrain));
}

}  // namespace ranklab
