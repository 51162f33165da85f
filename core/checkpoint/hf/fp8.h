// Folders whose matrices are FP8 (E4M3, arXiv 2209.05433) with a scale for each block of 128 x 128, as DeepSeek-V3
// (arXiv 2412.19437, section 3.3) and Qwen3 are published: X.weight holds one-byte codes, X.weight_scale_inv the factor
// that a block's values are multiplied by. HfDequantized presents such a matrix as fp32: the product, rounded once.
// Those classes also quantize activations, which does not concern the weights. Cost: five times a matrix's bytes while
// it is read. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/hf/key.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

struct HfFp8 {
  int64_t block_rows = 0;
  int64_t block_columns = 0;
};

// The "quantization_config" of a config.json; nothing when there is none. Throws kBadFile naming the key when weights
// are quantized in a different way.
std::optional<HfFp8> read_hf_fp8(const HfJson& file, const std::string& path);

class HfDequantized : public TensorSource {
 public:
  // `stored` must outlive this. Throws kBadFile naming the tensor when a matrix lacks its scales, scales lack their
  // matrix, or the shape of the scales does not match the blocks.
  HfDequantized(const TensorSource& stored, const HfFp8& fp8);

  size_t matrices() const { return matrices_; }                                 // number of matrices that were FP8
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }  // without scales
  // Throws kBadFile naming tensor and block when a code is NaN, or a scale is not a number above zero.
  std::vector<std::byte> read(const std::string& name) const override;
  std::string where() const override { return stored_.where(); }

 private:
  void add_matrix(const TensorInfo& matrix);
  std::vector<float> scales_of(const TensorInfo& matrix) const;
  [[noreturn]] void refuse_block(const TensorInfo& matrix, int64_t block, const std::string& what,
                                 const std::string& got, const std::string& want) const;

  const TensorSource& stored_;
  const HfFp8 fp8_;
  size_t matrices_ = 0;
  std::vector<TensorInfo> tensors_;
};

}  // namespace ranklab
