// Folders whose experts are MXFP4 (OCP Microscaling Formats 1.0; arXiv 2310.10537), as gpt-oss is published: a tensor X
// [E, in, out] is stored as X_blocks [E, out, in / 32, 16] and X_scales [E, out, in / 32]. A byte holds two E2M1 codes,
// the one in the lower half first; a scale s multiplies its 32 values by 2^(s - 127). HfMxfp4 presents X in bf16, which
// holds every such product exactly. Cost: one expert at a time if single experts are requested. Thread rule: one
// thread.
#pragma once
#include <string>
#include <vector>

#include "core/checkpoint/hf/key.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

// Whether the "quantization_config" of a config.json says MXFP4. Throws kBadFile naming a key that is not understood.
bool is_hf_mxfp4(const HfJson& file, const std::string& path);

class HfMxfp4 : public TensorSource {
 public:
  // `stored` must outlive this. Throws kBadFile naming the tensor when blocks lack their scales, scales lack their
  // blocks, or the two do not match.
  explicit HfMxfp4(const TensorSource& stored);

  size_t quantized() const { return quantized_; }  // number of tensors that were MXFP4
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  std::vector<std::byte> read(const std::string& name) const override;
  // Throws kBadFile naming the tensor when a scale is NaN (255), or a product is infinite.
  std::vector<std::byte> read_slice(const std::string& name, int64_t index) const override;
  std::string where() const override { return stored_.where(); }

 private:
  void add(const TensorInfo& blocks);
  [[noreturn]] void refuse_scale(const std::string& name, int64_t expert, std::byte scale) const;

  const TensorSource& stored_;
  size_t quantized_ = 0;
  std::vector<TensorInfo> tensors_;
};

}  // namespace ranklab
