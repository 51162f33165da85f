// Sizes of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1; V3, arXiv 2412.19437): keys and
// values are projected from one compressed vector per token, and only a part of each query and key, shared by all heads
// on the key side, carries the position. Torch-free.
#pragma once
#include <cstdint>

namespace ranklab {

struct MlaConfig {
  int64_t q_lora_rank = 0;    // width of the compressed query; 0: queries are not compressed
  int64_t kv_lora_rank = 0;   // width of the compressed key and value; 0: no latent attention
  int64_t qk_head_dim = 128;  // per head, the part without position
  int64_t qk_pos_emb_head_dim = 64;
  int64_t v_head_dim = 128;

  bool enabled() const { return kv_lora_rank > 0; }
  int64_t query_head_dim() const { return qk_head_dim + qk_pos_emb_head_dim; }
  bool operator==(const MlaConfig&) const = default;
};

}  // namespace ranklab
