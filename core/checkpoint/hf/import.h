// Presents a Hugging Face folder as one of our checkpoints: config.json as a model configuration, and its tensors under
// our names, assembled as they are read. Opening compares every name and shape with the model: tensors that are
// missing, left over or of another shape are refused by name; nothing is silently dropped. Element types are kept,
// except that block-wise FP8 becomes fp32 (fp8.h) and MXFP4 becomes bf16 (mxfp4.h); a tensor of ours whose parts have
// different types becomes fp32. If one tensor is fp64, all become fp64, because a run cannot mix fp64 with other types.
// Cost: one of our tensors at a time. Thread rule: one thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/hf/config.h"
#include "core/checkpoint/hf/folder.h"
#include "core/checkpoint/hf/mapping.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

class HfModel : public TensorSource {
 public:
  explicit HfModel(const std::string& folder);  // throws kIo, kBadFile
  HfModel(const HfModel&) = delete;
  HfModel& operator=(const HfModel&) = delete;

  const ModelConfig& config() const { return config_.model; }
  const std::string& architecture() const { return config_.family.architecture; }
  TensorType type() const { return type_; }                         // of most weights
  const std::vector<std::string>& notes() const { return notes_; }  // messages for the user

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }  // "weight/NAME", "buffer/NAME"
  std::vector<std::byte> read(const std::string& name) const override;
  std::string where() const override { return folder_.where(); }

 private:
  const TensorSource& theirs() const;
  void see_through_quantization();
  void drop_absent_modules();
  void choose_names();
  void check_tensors();
  std::string their_name(const HfPart& part) const;
  TensorType common_type(const HfTensor& tensor) const;
  void check_copy(const HfTensor& tensor, const HfPart& part, const TensorInfo& info,
                  const std::vector<std::byte>& ours) const;
  std::vector<std::byte> read_part(const HfPart& part, TensorType type) const;

  HfFolder folder_;
  HfConfig config_;
  std::unique_ptr<const TensorSource> dequantized_;  // null: nothing is quantized
  std::vector<HfTensor> map_;                        // sorted by our names
  std::vector<TensorInfo> tensors_;
  TensorType type_ = TensorType::kF32;
  std::vector<std::string> notes_;
};

}  // namespace ranklab
