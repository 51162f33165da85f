#include "core/spec/model_config.h"

#include "core/spec/module_table.h"

namespace ranklab {

int64_t ModelConfig::layer_count(bool (ModelConfig::*has)(int64_t) const) const {
  int64_t count = 0;
  for (int64_t layer = 0; layer < num_layers; ++layer) count += (this->*has)(layer) ? 1 : 0;
  return count;
}

int64_t ModelConfig::remembered_elements() const {
  return linear_layer_count() * linear.memory_elements() + mamba_layer_count() * mamba_width() * mamba.state_dim;
}

int64_t ModelConfig::remembered_inputs() const {
  return linear_layer_count() * linear.convolved_elements() +
         mamba_layer_count() * (mamba.conv_kernel - 1) * mamba_convolved_width();
}

std::vector<RecurrenceHeads> ModelConfig::recurrences() const {
  std::vector<RecurrenceHeads> all;
  if (linear_layer_count() > 0) all.push_back({"linear attention", "--linear-num-key-heads", linear.num_key_heads});
  if (mamba_layer_count() > 0) all.push_back({"Mamba-2", "--mamba-num-groups", mamba.num_groups});
  return all;
}

int64_t ModelConfig::parameter_count() const { return count_model(*this, seq_length).total; }

int64_t ModelConfig::active_parameter_count() const { return count_model(*this, seq_length).active; }

double ModelConfig::training_flops_per_token(int64_t seq) const {
  const ModelCounts counts = count_model(*this, seq);
  return 3 * (counts.forward_flops_per_token + counts.mtp_forward_flops_per_token);
}

}  // namespace ranklab
