#include "core/runtime/text/generate.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "core/base/utf8.h"
#include "core/data/token_dataset.h"
#include "core/model/decode_cache.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

class CachedScorer : public TokenScorer {
 public:
  CachedScorer(CausalLm& model, const ModelConfig& config)
      : model_(model),
        cache_(model.begin_decoding(/*sequences=*/1, config.seq_length)),
        recompute_after_(config.rope_scaling.kind == RopeScalingKind::kLongRope
                             ? static_cast<size_t>(config.rope_scaling.original_seq_length)
                             : 0) {}

  at::Tensor next_logits(const std::vector<int64_t>& window) override {
    const bool factors_change = seen_.size() <= recompute_after_ && window.size() > recompute_after_;
    const bool extends_cache =
        window.size() > seen_.size() && !factors_change && std::equal(seen_.begin(), seen_.end(), window.begin());
    if (!extends_cache) {
      cache_->clear();
      seen_.clear();
    }
    std::vector<int64_t> fresh(window.begin() + static_cast<std::ptrdiff_t>(seen_.size()), window.end());
    const at::Tensor tokens_BS = at::from_blob(fresh.data(), {1, static_cast<int64_t>(fresh.size())}, at::kLong);
    seen_ = window;
    return model_.decode(*cache_, tokens_BS.to(model_.registry().device()))[0];
  }
  int64_t cache_bytes_per_token() const override { return cache_->bytes_per_token(); }

 private:
  CausalLm& model_;
  std::unique_ptr<DecodeCache> cache_;
  size_t recompute_after_;  // texts longer than this rotate all keys with LongRoPE's other factors; 0: nothing changes
  std::vector<int64_t> seen_;  // the tokens in the cache
};

class WindowScorer : public TokenScorer {
 public:
  WindowScorer(std::function<at::Tensor(const at::Tensor&)> logits, c10::Device device, int64_t multiple)
      : logits_(std::move(logits)), device_(device), multiple_(multiple) {}

  at::Tensor next_logits(const std::vector<int64_t>& window) override {
    // Padded no more than necessary: causal attention masks padding, but the scale of a whole tensor would include it.
    const auto last = static_cast<int64_t>(window.size()) - 1;
    std::vector<int64_t> padded = window;
    padded.resize(static_cast<size_t>((last / multiple_ + 1) * multiple_), 0);
    return logits_(at::tensor(padded, at::kLong).unsqueeze(0).to(device_))[0][last];
  }

 private:
  std::function<at::Tensor(const at::Tensor&)> logits_;
  c10::Device device_;
  int64_t multiple_;
};

struct Nucleus {
  int64_t tokens = 0;
  double probability = 1.0;
};

// The smallest set of the likeliest tokens whose probabilities add up to `top_p`; at least one token.
Nucleus nucleus_of(std::span<const double> probability, double top_p) {
  const auto all = static_cast<int64_t>(probability.size());
  if (top_p >= 1) return {all};
  Nucleus nucleus{.probability = 0};
  while (nucleus.tokens < all && (nucleus.tokens == 0 || nucleus.probability < top_p))
    nucleus.probability += probability[static_cast<size_t>(nucleus.tokens++)];
  return nucleus;
}

// Ties are broken in favour of the lowest token, so that every rank draws the same token.
int64_t draw(const at::Tensor& logits_V, const GenerateOptions& options, float uniform) {
  const at::Tensor logits = logits_V.to(at::kCPU, at::kDouble);
  if (options.temperature <= 0 || options.top_k == 1) return logits.argmax().item<int64_t>();
  const auto [sorted, tokens] = at::sort(logits, /*stable=*/true, /*dim=*/-1, /*descending=*/true);
  const int64_t among = options.top_k > 0 ? std::min(options.top_k, sorted.size(0)) : sorted.size(0);
  const at::Tensor probability = at::softmax(sorted.narrow(0, 0, among) / options.temperature, -1).contiguous();
  const std::span<const double> p(probability.const_data_ptr<double>(), static_cast<size_t>(among));
  const Nucleus nucleus = nucleus_of(p, options.top_p);
  double sum = 0;
  for (int64_t i = 0; i < nucleus.tokens; ++i) {
    sum += p[static_cast<size_t>(i)];
    if (uniform * nucleus.probability < sum) return tokens[i].item<int64_t>();
  }
  return tokens[nucleus.tokens - 1].item<int64_t>();
}

}  // namespace

std::unique_ptr<TokenScorer> make_cached_scorer(CausalLm& model, const ModelConfig& config) {
  return std::make_unique<CachedScorer>(model, config);
}

std::unique_ptr<TokenScorer> make_window_scorer(std::function<at::Tensor(const at::Tensor&)> logits, c10::Device device,
                                                int64_t multiple) {
  return std::make_unique<WindowScorer>(std::move(logits), device, multiple);
}

std::vector<int64_t> generate_tokens(TokenScorer& scorer, std::vector<int64_t> tokens, const GenerateOptions& options) {
  RANKLAB_CHECK(!tokens.empty(), ErrorKind::kInvalidArgument, .where = "sample", .what = "the prompt is empty",
                .got = "''", .want = "at least one byte",
                .fix = "give one: --sample-prompt TEXT of train, --prompt TEXT of generate");
  const at::NoGradGuard no_grad;
  const RandomStream stream(options.seed, RandomPurpose::kSample, "generate");
  const auto window = static_cast<size_t>(options.seq_length);
  size_t begin = tokens.size() - std::min(tokens.size(), window);
  for (int64_t i = 0; i < options.tokens; ++i) {
    if (tokens.size() - begin > window) begin = tokens.size() - std::max<size_t>(1, window / 2);
    const std::vector<int64_t> seen(tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.end());
    tokens.push_back(draw(scorer.next_logits(seen), options, stream.uniform(static_cast<uint64_t>(i))));
    if (std::ranges::find(options.end_tokens, tokens.back()) != options.end_tokens.end()) break;
  }
  return tokens;
}

std::vector<int64_t> prompt_tokens(const std::string& text) { return ByteTokenizer::encode(text); }

std::string printable_text(const std::vector<int64_t>& tokens) { return readable_text(ByteTokenizer::decode(tokens)); }

}  // namespace ranklab
