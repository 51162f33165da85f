#include "core/model/model_config.h"

#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// Weights of one layer that a token is multiplied with.
int64_t layer_matmul_weights(const ModelConfig& c) {
  const int64_t qkv = c.hidden_size * (c.hidden_size + 2 * c.query_groups() * c.head_dim());
  const int64_t out = c.hidden_size * c.hidden_size;
  const int64_t mlp_inputs = c.activation == ActivationKind::kSwiGlu ? 2 : 1;
  return qkv + out + (mlp_inputs + 1) * c.hidden_size * c.ffn_hidden_size;
}

int64_t layer_biases(const ModelConfig& c) {
  if (!c.add_bias) return 0;
  const int64_t mlp_inputs = c.activation == ActivationKind::kSwiGlu ? 2 : 1;
  return c.hidden_size + 2 * c.query_groups() * c.head_dim() + c.hidden_size + mlp_inputs * c.ffn_hidden_size +
         c.hidden_size;
}

// The limits are far beyond any model, and keep every product of them inside 64 bits.
void check_size(const char* flag, int64_t value, int64_t largest) {
  RANKLAB_CHECK(value > 0 && value <= largest, ErrorKind::kInvalidArgument, .where = "model",
                .what = strprintf("%s is out of range", flag), .got = std::to_string(value),
                .want = "1 to " + std::to_string(largest));
}

void check_number(const char* flag, double value, bool legal, const char* want) {
  RANKLAB_CHECK(legal && std::isfinite(value), ErrorKind::kInvalidArgument, .where = "model",
                .what = strprintf("%s is out of range", flag), .got = strprintf("%g", value), .want = want);
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> result;
  for (int64_t d = 1; d <= n && d <= 1024; ++d) {
    if (n % d == 0) result.push_back(d);
  }
  return result;
}

// `value` (named by its flag) must be a multiple of `divisor`.
void check_multiple(const char* flag, int64_t value, const char* divisor_flag, int64_t divisor) {
  if (value % divisor == 0) return;
  const int64_t below = value / divisor * divisor, above = below + divisor;
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "model",
               .what = strprintf("%s does not divide by %s", flag, divisor_flag),
               .got = strprintf("%s %lld, %s %lld", flag, static_cast<long long>(value), divisor_flag,
                                static_cast<long long>(divisor)),
               .want = strprintf("%s in {%s}", divisor_flag, join(divisors(value), ", ").c_str()),
               .fix = below > 0 ? strprintf("use %s %lld or %lld", flag, static_cast<long long>(below),
                                            static_cast<long long>(above))
                                : strprintf("use %s %lld", flag, static_cast<long long>(above))});
}

}  // namespace

int64_t ModelConfig::parameter_count() const {
  const int64_t norm_size = norm == NormKind::kLayerNorm ? 2 * hidden_size : hidden_size;
  int64_t count = vocab_size * hidden_size + norm_size;
  if (!tie_embeddings) count += vocab_size * hidden_size;
  if (position == PositionKind::kLearned) count += seq_length * hidden_size;
  return count + num_layers * (layer_matmul_weights(*this) + layer_biases(*this) + 2 * norm_size);
}

double ModelConfig::training_flops_per_token(int64_t seq) const {
  const auto layers = static_cast<double>(num_layers);
  const double weights =
      layers * static_cast<double>(layer_matmul_weights(*this)) + static_cast<double>(vocab_size * hidden_size);
  // QK^T and PV: 2 x 2 S H forward, half of it causal; backward is twice the forward.
  const double attention = layers * static_cast<double>(seq * hidden_size);
  return 6.0 * (weights + attention);
}

void validate(const ModelConfig& c, int tp, bool sequence_parallel) {
  constexpr int64_t kWidth = 1 << 20;
  check_size("--num-layers", c.num_layers, 1 << 16);
  check_size("--hidden-size", c.hidden_size, kWidth);
  check_size("--ffn-hidden-size", c.ffn_hidden_size, kWidth);
  check_size("--num-attention-heads", c.num_attention_heads, kWidth);
  check_size("--vocab-size", c.vocab_size, 1 << 24);
  check_size("--seq-length", c.seq_length, 1 << 24);
  check_size("--tp", tp, kWidth);
  check_multiple("--hidden-size", c.hidden_size, "--num-attention-heads", c.num_attention_heads);
  check_size("--num-query-groups", c.query_groups(), kWidth);
  check_multiple("--num-attention-heads", c.num_attention_heads, "--num-query-groups", c.query_groups());
  if (c.position == PositionKind::kRope) check_multiple("head dimension", c.head_dim(), "rotary pair", 2);
  check_multiple("--num-attention-heads", c.num_attention_heads, "--tp", tp);
  check_multiple("--num-query-groups", c.query_groups(), "--tp", tp);
  check_multiple("--ffn-hidden-size", c.ffn_hidden_size, "--tp", tp);
  if (sequence_parallel) check_multiple("--seq-length", c.seq_length, "--tp", tp);
  check_number("--hidden-dropout", c.dropout, c.dropout >= 0 && c.dropout < 1, "0 <= value < 1");
  check_number("--rotary-base", c.rope_theta, c.rope_theta > 0, "more than 0");
  check_number("--init-method-std", c.init_std, c.init_std >= 0, "0 or more");
  check_number("the epsilon of the norms", c.norm_epsilon, c.norm_epsilon > 0, "more than 0");
}

}  // namespace ranklab
