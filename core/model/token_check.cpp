#include "core/model/token_check.h"

#include <span>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {

void check_tokens(const at::Tensor& tokens_BS, const ModelConfig& config) {
  RANKLAB_CHECK(tokens_BS.dim() == 2 && tokens_BS.size(1) > 0 && tokens_BS.size(1) <= config.seq_length,
                ErrorKind::kInvalidArgument, .where = "transformer", .what = "the sequences do not fit the model",
                .got = "tokens [" + join(std::span<const int64_t>(tokens_BS.sizes()), ", ") + "]",
                .want = strprintf("[B, S] with S at most %lld", static_cast<long long>(config.seq_length)),
                .fix = "cut the sequences or raise --seq-length");
  if (!tokens_BS.is_cpu() || tokens_BS.numel() == 0) return;  // reading a device's tokens would synchronize with it
  const NoCostScope no_cost;
  const auto [least, most] = at::aminmax(tokens_BS);
  RANKLAB_CHECK(least.item<int64_t>() >= 0 && most.item<int64_t>() < config.vocab_size, ErrorKind::kInvalidArgument,
                .where = "transformer", .what = "a token is outside the vocabulary",
                .got = strprintf("tokens from %lld to %lld", static_cast<long long>(least.item<int64_t>()),
                                 static_cast<long long>(most.item<int64_t>())),
                .want = strprintf("0 .. %lld", static_cast<long long>(config.vocab_size - 1)),
                .fix = "use the tokenizer that this vocabulary belongs to, or raise --vocab-size");
}

}  // namespace ranklab
