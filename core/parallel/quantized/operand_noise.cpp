#include "core/parallel/quantized/operand_noise.h"

#include "core/base/error.h"
#include "core/nn/device_random.h"
#include "core/parallel/quantized/device_operand.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// [R]: a token's number is sample * seq_length + position.
std::vector<uint64_t> row_numbers(const at::Tensor& matrix, const TokenRows& rows, const NoiseStream& from) {
  if (!from.rows.empty()) return {from.rows.begin(), from.rows.end()};
  std::vector<uint64_t> numbers(static_cast<size_t>(matrix.size(0)));
  for (int64_t row = 0; row < matrix.size(0); ++row) {
    const int64_t sequence = rows.tokens.first_sample + row % rows.sequences;
    const int64_t position = rows.tokens.position(from.first_position + row / rows.sequences);
    numbers[static_cast<size_t>(row)] = static_cast<uint64_t>(sequence * rows.tokens.seq_length + position);
  }
  return numbers;
}

at::Tensor device_row_numbers(const at::Tensor& matrix, const TokenRows& rows, const NoiseStream& from) {
  const MemoryScope memory(MemoryCategory::kBuffers);
  const TokenContext& tokens = rows.tokens;
  const auto options = at::TensorOptions(at::kLong).device(matrix.device());
  if (!from.rows.empty()) return from_runs(from.rows, options);
  const at::Tensor position_S =
      device_positions(tokens.positions.get(), from.first_position, matrix.size(0) / rows.sequences, options);
  const at::Tensor index_B = at::arange(rows.sequences, options);
  const at::Tensor sample_B =
      tokens.random_offset.defined() ? index_B + first_sample_of(tokens.random_offset) : index_B + tokens.first_sample;
  return (position_S.unsqueeze(1) + sample_B * tokens.seq_length).flatten();
}

}  // namespace

OperandNoise operand_noise(const at::Tensor& matrix, const TokenRows& tokens, const NoiseStream& from) {
  const NoCostScope of_rounding;
  const at::Tensor& offset = tokens.tokens.random_offset;
  const bool on_device = rounding_of(matrix) != nullptr;
  RANKLAB_CHECK(on_device || !offset.defined(), ErrorKind::kInternal, .where = "stochastic rounding",
                .what = "a recorded pass on a device without kernels that round would repeat the host's numbers");
  OperandNoise noise{.stream = RandomStream(from.seed, RandomPurpose::kStochasticRounding, from.name,
                                            static_cast<uint64_t>(tokens.tokens.step)),
                     .columns = from.columns,
                     .name_key = RandomStream::name_key(from.name)};
  if (offset.defined()) noise.step_key = rounding_key_of(offset);
  if (matrix.is_meta() || (from.rows.empty() && tokens.sequences == 0)) return noise;
  if (on_device)
    noise.device_rows = device_row_numbers(matrix, tokens, from);
  else
    noise.rows = row_numbers(matrix, tokens, from);
  return noise;
}

}  // namespace ranklab
