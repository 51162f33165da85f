#include "core/runtime/generate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/data/token_dataset.h"

namespace ranklab {
namespace {

int64_t draw(const at::Tensor& logits_V, double temperature, float uniform) {
  if (temperature <= 0) return logits_V.argmax().item<int64_t>();
  const at::Tensor probability = at::softmax(logits_V.to(at::kCPU, at::kDouble) / temperature, -1).contiguous();
  const double* p = probability.const_data_ptr<double>();
  double sum = 0;
  for (int64_t i = 0; i < probability.numel(); ++i) {
    sum += p[i];
    if (uniform < sum) return i;
  }
  return probability.numel() - 1;
}

}  // namespace

std::string generate_text(const std::function<at::Tensor(const Batch&)>& logits, const GenerateOptions& options) {
  RANKLAB_CHECK(!options.prompt.empty(), ErrorKind::kInvalidArgument, .where = "sample", .what = "the prompt is empty",
                .got = "''", .want = "at least one byte", .fix = "pass --sample-prompt TEXT");
  const at::NoGradGuard no_grad;
  std::vector<int64_t> tokens = ByteTokenizer::encode(options.prompt);
  const RandomStream stream(options.seed, RandomPurpose::kSample, "generate");
  for (int64_t i = 0; i < options.tokens; ++i) {
    // The window is always seq_length wide (sequence parallelism splits it): positions after the last token are causal
    // padding.
    const int64_t used = std::min<int64_t>(static_cast<int64_t>(tokens.size()), options.seq_length);
    at::Tensor window_BS = at::full({1, options.seq_length}, 0, at::kLong);
    std::copy(tokens.end() - used, tokens.end(), window_BS.mutable_data_ptr<int64_t>());
    window_BS = window_BS.to(options.device);
    const at::Tensor logits_V = logits({.tokens_BS = window_BS, .targets_BS = window_BS})[0][used - 1];
    tokens.push_back(draw(logits_V, options.temperature, stream.uniform(static_cast<uint64_t>(i))));
  }
  std::string text = ByteTokenizer::decode(tokens);
  for (char& c : text) {
    if (c != '\n' && (std::isprint(static_cast<unsigned char>(c)) == 0)) c = '.';
  }
  return text;
}

}  // namespace ranklab
