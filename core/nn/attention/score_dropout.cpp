#include "core/nn/attention/score_dropout.h"

#include "core/base/numbers/philox.h"
#include "core/nn/device_random.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

bool are_neighbours(const std::vector<int64_t>& positions) {
  return positions.back() - positions.front() + 1 == static_cast<int64_t>(positions.size());
}

}  // namespace

at::Tensor ScoreDropout::drawn_on_device(int64_t first_sequence, int64_t sequences, int64_t own_heads,
                                         const std::vector<int64_t>& queries, const std::vector<int64_t>& keys,
                                         const at::Tensor& like) const {
  const at::Tensor start = offset.defined() ? offset : random_offset(step, first_sample, like.device());
  const DeviceRandom random(seed, layer_name, start);
  const auto range = [&](int64_t first, int64_t count) { return at::arange(first, first + count, start.options()); };
  const at::Tensor sample_B11 = (first_sample_of(start) + range(first_sequence, sequences)).view({-1, 1, 1});
  const at::Tensor head_BH1 = sample_B11 * heads + range(first_head, own_heads).unsqueeze(1);
  const at::Tensor row_BHQ = (head_BH1 * seq_length + from_runs(queries, start.options())) * seq_length;
  if (!are_neighbours(keys)) {
    const at::Tensor pair_BHQK = row_BHQ.unsqueeze(-1) + from_runs(keys, start.options());
    return random.dropout_mask(pair_BHQK, 1, /*aligned=*/false, p, like).squeeze(-1);
  }
  const auto width = static_cast<int64_t>(keys.size());
  const bool aligned = seq_length % 4 == 0 && keys.front() % 4 == 0 && width % 4 == 0;
  return random.dropout_mask(row_BHQ + keys.front(), width, aligned, p, like);
}

at::Tensor ScoreDropout::mask(int64_t first_sequence, int64_t sequences, int64_t own_heads,
                              const std::vector<int64_t>& queries, const std::vector<int64_t>& keys,
                              const at::Tensor& like) const {
  const NoCostScope no_cost;  // a GPU draws the mask inside its attention kernel
  const bool any = !queries.empty() && !keys.empty();
  if (any && (offset.defined() || like.is_cuda()))
    return drawn_on_device(first_sequence, sequences, own_heads, queries, keys, like);
  const auto num_keys = static_cast<int64_t>(keys.size());
  const at::Tensor mask = at::empty({sequences, own_heads, static_cast<int64_t>(queries.size()), num_keys},
                                    at::TensorOptions().dtype(at::kFloat).device(host_side(like)));
  if (mask.is_meta() || mask.numel() == 0) return mask.to(like.options());
  const RandomStream stream(seed, RandomPurpose::kDropout, layer_name, step);
  const auto kept = static_cast<float>(1.0 / (1.0 - p));
  const bool in_a_run = are_neighbours(keys);
  float* row = mask.mutable_data_ptr<float>();
  for (int64_t b = 0; b < sequences; ++b) {
    for (int64_t head = 0; head < own_heads; ++head) {
      const int64_t of_head = (first_sample + first_sequence + b) * heads + first_head + head;
      for (const int64_t query : queries) {
        const auto first = static_cast<uint64_t>((of_head * seq_length + query) * seq_length);
        if (in_a_run) {
          stream.fill_uniform(first + static_cast<uint64_t>(keys.front()), {row, keys.size()});
        } else {
          for (size_t k = 0; k < keys.size(); ++k) row[k] = stream.uniform(first + static_cast<uint64_t>(keys[k]));
        }
        for (size_t k = 0; k < keys.size(); ++k) row[k] = static_cast<double>(row[k]) < p ? 0.0f : kept;
        row += num_keys;
      }
    }
  }
  return mask.to(like.options());
}

}  // namespace ranklab
