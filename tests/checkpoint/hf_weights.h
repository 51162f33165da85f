// Weights whose every element is another number, in memory.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/hf/family.h"
#include "core/checkpoint/hf/mapping.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab::checkpoint_samples {

class MemoryTensors : public TensorSource {
 public:
  const std::vector<TensorInfo>& tensors() const override { return infos_; }
  std::vector<std::byte> read(const std::string& name) const override { return bytes_.at(name); }
  std::string where() const override { return "memory"; }

  void add(const std::string& name, std::vector<int64_t> shape) {
    uint64_t bytes = 0;
    tensor_bytes(shape, TensorType::kF32, bytes);
    std::vector<std::byte>& data = bytes_[name];
    data.resize(bytes);
    for (size_t i = 0; i < bytes / sizeof(float); ++i) {
      const float value = next_++;
      std::memcpy(data.data() + i * sizeof value, &value, sizeof value);
    }
    infos_.push_back({name, TensorType::kF32, std::move(shape)});
    std::ranges::sort(infos_, {}, &TensorInfo::name);
  }
  void remove(const std::string& name) {
    std::erase_if(infos_, [&](const TensorInfo& t) { return t.name == name; });
  }
  void reshape(const std::string& name, std::vector<int64_t> shape) {
    for (TensorInfo& t : infos_) {
      if (t.name == name) t.shape = shape;
    }
  }

 private:
  std::vector<TensorInfo> infos_;
  std::map<std::string, std::vector<std::byte>> bytes_;
  float next_ = 1;
};

// All tensors of the model, made as they come.
inline MemoryTensors counted_weights(const ModelConfig& config) {
  MemoryTensors tensors;
  for (const HfTensor& tensor : hf_mapping(config, hf_family(config))) {
    if (tensor.ours.starts_with("weight/") || config.moe.expert_bias) tensors.add(tensor.ours, tensor.shape);
  }
  tensors.add("exp_avg/embedding.weight", {config.vocab_size, config.hidden_size});  // passed over
  return tensors;
}

inline std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}
inline std::vector<float> floats(const TensorSource& source, const std::string& name) {
  return floats(source.read(name));
}

}  // namespace ranklab::checkpoint_samples
