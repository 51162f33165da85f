// The interface through which core quantizes operands of products on a GPU: the three steps of quantize.h on device
// pointers, separate so that ranks can agree on the amax in between. The backend that has a GPU registers its kernels
// when it is loaded; core names no backend. Torch-free, C++17 (kernels include it). Thread rule: register before ranks
// start; steps are asynchronous on the device's current stream, any thread.
#pragma once
#include <cstdint>

#include "core/precision/philox_lane.h"
#include "core/precision/scale_maker.h"

namespace ranklab {

// A matrix or a part of one, each side below 2^31; its groups form a grid of ceil(rows / height) x ceil(cols / width).
struct DeviceMatrix {
  const void* x = nullptr;  // fp32 or bf16
  bool bf16 = false;
  int64_t rows = 0, cols = 0, stride = 0;  // stride: elements from row to row
  int64_t height = 1, width = 1;           // size of a group

  RANKLAB_EVERYWHERE int64_t grid_cols() const { return (cols + width - 1) / width; }
  RANKLAB_EVERYWHERE int64_t groups() const { return (rows + height - 1) / height * grid_cols(); }
};

// Like RoundingNoise; row_numbers null: round to nearest.
struct DeviceNoise {
  PhiloxKey key = {};
  // In a recorded pass: where the device finds the step's key, which with the hash of the stream's name replaces
  // key.stream (key_at_step()); null: key.stream applies.
  const uint64_t* step_key = nullptr;
  uint64_t name = 0;
  const uint64_t* row_numbers = nullptr;
  int64_t first_column = 0, columns = 0;
};

// Where to write the results; each pointer belongs to the first element of the matrix. Null: not wanted.
struct DeviceRounded {
  float* values = nullptr;    // dequantized values
  uint8_t* codes = nullptr;   // one byte each; only 8-bit formats
  int64_t stride = 0;         // elements from row to row, for both
  uint8_t* turned = nullptr;  // the codes of the transpose: element (row, column) at [column * turned_stride + row]
  int64_t turned_stride = 0;
};

// Compute capability 9.0, as DeviceRounding::capability() returns it.
constexpr int kHopperCapability = 90;

class DeviceRounding {
 public:
  virtual ~DeviceRounding() = default;
  // Compute capability as one number: 90 for 9.0.
  virtual int capability() const = 0;
  // The amax of each group; infinite if one of its numbers is not finite.
  virtual void group_amax(const DeviceMatrix& matrix, float* amax) const = 0;
  // For kE4M3 maker.whole is computed from *tensor_amax.
  virtual void make_scales(const ScaleMaker& maker, const float* amax, int64_t groups, const float* tensor_amax,
                           float* scales) const = 0;
  virtual void round(const DeviceMatrix& matrix, const RoundingGrid& grid, const float* scales,
                     const DeviceNoise& noise, const DeviceRounded& out) const = 0;
  // All three steps in one pass, rounding to nearest, for groups that do not span ranks: tiles along rows, and blocks.
  // Not for kE4M3. `values` are dense.
  virtual void round_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker,
                             float* scales, float* values) const = 0;
  // Whether cast_at_once() supports a matrix and its groups: 128 numbers along a row, 128 along a column, or squares of
  // 128.
  virtual bool casts_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker) const = 0;
  // All three steps in one pass, rounding to nearest. With groups of 128 along a row it writes codes in the matrix's
  // layout, with groups of 128 along a column codes of the transpose, and with squares of 128 either.
  // `along_columns_first`: for groups along columns, the numbers are first rounded with groups of 128 along rows.
  // REQUIRES: casts_at_once(), and no groups that span ranks.
  virtual void cast_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker,
                            bool along_columns_first, float* scales, const DeviceRounded& out) const = 0;
  // hash_bytes() of each row, converted to fp32.
  virtual void hash_rows(const DeviceMatrix& matrix, uint64_t* numbers) const = 0;
};

// Whose tensors are rounded: the GPU's, or the host's, where tests run the GPU's steps as loops.
enum class RoundedTensors { kGpu, kHost };
// Null: no device can round. The object must live as long as the process.
void use_device_rounding(const DeviceRounding* rounding, RoundedTensors tensors = RoundedTensors::kGpu);
const DeviceRounding* device_rounding(RoundedTensors tensors = RoundedTensors::kGpu);

}  // namespace ranklab
