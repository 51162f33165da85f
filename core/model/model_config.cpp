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

void check_positive(const char* flag, int64_t value) {
  RANKLAB_CHECK(value > 0, ErrorKind::kInvalidArgument, .where = "model",
                .what = strprintf("%s must be positive", flag), .got = strprintf("%lld", static_cast<long long>(value)),
                .want = "1 or more", .fix = strprintf("set %s", flag));
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
  check_positive("--num-layers", c.num_layers);
  check_positive("--hidden-size", c.hidden_size);
  check_positive("--ffn-hidden-size", c.ffn_hidden_size);
  check_positive("--num-attention-heads", c.num_attention_heads);
  check_positive("--vocab-size", c.vocab_size);
  check_positive("--seq-length", c.seq_length);
  check_positive("--tp", tp);
  check_multiple("--hidden-size", c.hidden_size, "--num-attention-heads", c.num_attention_heads);
  check_positive("--num-query-groups", c.query_groups());
  check_multiple("--num-attention-heads", c.num_attention_heads, "--num-query-groups", c.query_groups());
  if (c.position == PositionKind::kRope) check_multiple("head dimension", c.head_dim(), "rotary pair", 2);
  check_multiple("--num-attention-heads", c.num_attention_heads, "--tp", tp);
  check_multiple("--num-query-groups", c.query_groups(), "--tp", tp);
  check_multiple("--ffn-hidden-size", c.ffn_hidden_size, "--tp", tp);
  if (sequence_parallel) check_multiple("--seq-length", c.seq_length, "--tp", tp);
  RANKLAB_CHECK(c.dropout >= 0 && c.dropout < 1, ErrorKind::kInvalidArgument, .where = "model",
                .what = "the dropout probability is out of range", .got = strprintf("--dropout %g", c.dropout),
                .want = "0 <= dropout < 1", .fix = "use e.g. --dropout 0.1");
  RANKLAB_CHECK(
      c.norm_epsilon > 0 && c.rope_theta > 0 && c.init_std >= 0, ErrorKind::kInvalidArgument, .where = "model",
      .what = "a model constant is out of range",
      .got = strprintf("norm epsilon %g, rope theta %g, init std %g", c.norm_epsilon, c.rope_theta, c.init_std),
      .want = "epsilon > 0, theta > 0, std >= 0");
}

}  // namespace ranklab
