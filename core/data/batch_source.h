// Which samples a rank trains on. Stateless: the batch of (step, microbatch, dp_rank) is a pure function of the seed,
// so a data position is one integer (the step), a resumed run sees exactly the data of an uninterrupted one, and ranks
// of one model-parallel group (same dp_rank) see the same tokens.
//
// Sample order in a global batch of G = dp x M x b (M microbatches of b): dp_rank d, microbatch i holds samples [(d M +
// i) b, (d M + i + 1) b); while batches grow (core/base/batch_ramp.h), M differs between steps. A rank's microbatches
// are adjacent, so the tree over microbatches and then dp ranks is the same balanced tree for every split of a
// power-of-two G (DESIGN "Parity").
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/batch_ramp.h"
#include "core/data/data_blend.h"
#include "core/data/token_dataset.h"

namespace ranklab {

struct BatchShape {
  int64_t micro_batch_size = 1;
  int64_t num_microbatches = 1;
  int dp_size = 1;
  int64_t global_batch_size() const { return micro_batch_size * num_microbatches * dp_size; }
};

struct TokenBatch {
  at::Tensor tokens_BS;      // int64
  at::Tensor targets_BS;     // int64
  int64_t first_sample = 0;  // position of the first sequence in the global batch
};

// Identifies a sequence of a batch before it is read.
struct DrawnSample {
  int64_t sequence = 0;  // index in the global batch
  size_t set = 0;        // index of the data set, in a blend
  int64_t epoch = 0;     // completed passes over that set
  int64_t sample = 0;    // index in the set's training split, or for validation in its validation split
};

class BatchSource {
 public:
  // `ramp`: the ramp of batch sizes; without one, every batch has the size of `shape`.
  BatchSource(BlendedSets data, BatchShape shape, uint64_t seed, BatchRamp ramp = {});
  BatchSource(std::shared_ptr<const TokenDataset> dataset, BatchShape shape, uint64_t seed, BatchRamp ramp = {});

  // Sets the number of samples consumed before step `step`. Before the first call, step 0 starts with the first sample.
  void seek(int64_t step, int64_t consumed_samples);

  // The sequences of a microbatch, in order. Every epoch visits a data set in a newly shuffled order.
  std::vector<DrawnSample> draw(int64_t step, int64_t microbatch, int dp_rank) const;
  TokenBatch train(int64_t step, int64_t microbatch, int dp_rank) const;
  // Validation batches are the same for every step and layout: batch k of the unshuffled splits, wrapping around.
  std::vector<DrawnSample> draw_validation(int64_t batch, int64_t microbatch, int dp_rank) const;
  TokenBatch validation(int64_t batch, int64_t microbatch, int dp_rank) const;
  // Takes validation batches from all of these sets instead of from a split of the training data.
  void validate_on(BlendedSets sets) { validation_ = std::move(sets); }
  bool has_validation() const { return validation_sets().sets[0]->samples(validation_split()) > 0; }
  std::vector<double> epochs(int64_t step) const;  // passes over each data set before this step
  const BatchShape& shape() const { return shape_; }
  BatchShape shape_of(int64_t step) const;  // has fewer microbatches while batches grow
  int64_t seq_length() const { return set(0).seq_length(); }

 private:
  static int64_t first_sample(const BatchShape& shape, int64_t microbatch, int dp_rank);
  TokenBatch empty(const BatchShape& shape, int64_t microbatch, int dp_rank) const;
  TokenBatch read(TokenBatch batch, const BlendedSets& sets, Split split, const std::vector<DrawnSample>& drawn) const;
  const TokenDataset& set(size_t index) const { return *data_.sets[index]; }
  const BlendedSets& validation_sets() const { return validation_ ? *validation_ : data_; }
  Split validation_split() const { return validation_ ? Split::kTrain : Split::kValidation; }  // kTrain: all of a set
  int64_t samples_before(int64_t step) const;
  BlendedSets data_;
  std::optional<BlendedSets> validation_;
  BatchShape shape_;
  uint64_t seed_;
  BatchRamp ramp_;
  int64_t cursor_step_ = 0, cursor_samples_ = 0;
};

}  // namespace ranklab
