// Decoding with a cache against logits of all positions at once (fp64, 1e-12): every kind of attention, tensor-parallel
// with and without sequence parallelism, which decoding switches off.
#include <gtest/gtest.h>

#include <optional>

#include "core/base/error.h"
#include "core/model/decode_cache.h"
#include "core/model/transformer.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/model/decode_models.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

using namespace decode_models;  // NOLINT: the models of decode_models.h

// A prompt of `first` positions, then one at a time.
void expect_decodes(const ModelConfig& config, int tp, bool sequence_parallel, int64_t first) {
  ParallelDims dims = dims_of(1, tp);
  dims.kv_copies = config.kv_copies(tp);
  run_ranks(dims, [&](RankContext& context) {
    const at::NoGradGuard no_grad;
    const auto model =
        make_transformer(config, context, {.sequence_parallel = sequence_parallel, .seed = 7, .dtype = at::kDouble});
    model->set_training(false);
    const at::Tensor tokens_BS = (at::arange(2 * kSeq, at::kLong).view({2, kSeq}) * 5 + 3).remainder(kVocab);
    const at::Tensor want_BSV = model->logits({.tokens_BS = tokens_BS, .targets_BS = {}});
    ASSERT_TRUE(model->can_decode());
    const auto cache = model->begin_decoding(2, kSeq);
    for (int64_t at = 0; at < kSeq;) {
      const int64_t count = at == 0 ? first : 1;
      const at::Tensor got_BV = model->decode(*cache, tokens_BS.narrow(1, at, count));
      at += count;
      ASSERT_EQ(got_BV.sizes(), (std::vector<int64_t>{2, kVocab}));
      EXPECT_LT(golden::relative_error(got_BV, want_BSV.select(1, at - 1)), 1e-12) << "after " << at << " positions";
      EXPECT_EQ(cache->positions, at);
    }
    // A window that does not extend the previous one.
    cache->clear();
    const at::Tensor again_BV = model->decode(*cache, tokens_BS.narrow(1, 0, 3));
    EXPECT_LT(golden::relative_error(again_BV, want_BSV.select(1, 2)), 1e-12);
    // ... and training continues with sequence parallelism.
    EXPECT_TRUE(at::equal(model->logits({.tokens_BS = tokens_BS, .targets_BS = {}}), want_BSV));
  });
}

void expect_decodes_everywhere(const ModelConfig& config) {
  for (const int64_t first : {1, 5, 12}) expect_decodes(config, 1, false, first);
  for (const int tp : {2, 4}) {
    for (const bool sp : {false, true}) {
      if (config.moe.enabled() && !sp) continue;  // experts want sequence parallelism
      SCOPED_TRACE(testing::Message() << "tp " << tp << (sp ? " sp" : ""));
      expect_decodes(config, tp, sp, 5);
    }
  }
}

TEST(Decode, Gpt2Like) { expect_decodes_everywhere(gpt2()); }
TEST(Decode, LlamaLike) { expect_decodes_everywhere(llama()); }
TEST(Decode, LatentAttention) { expect_decodes_everywhere(latent(10)); }
TEST(Decode, LatentAttentionWithoutQueryCompression) { expect_decodes_everywhere(latent(0)); }
TEST(Decode, LatentAttentionWithWindowsBoundsAndBiases) { expect_decodes_everywhere(latent_with_all()); }
TEST(Decode, LatentAttentionWithLearnedPositions) { expect_decodes_everywhere(latent_learned_positions()); }
TEST(Decode, OneKeyHeadOfAllRanks) {
  ModelConfig c = qwen();
  c.num_query_groups = 1;
  c.kv_channels = 8;
  expect_decodes_everywhere(c);
}
TEST(Decode, Llama3Like) { expect_decodes_everywhere(llama3()); }
TEST(Decode, Window) { expect_decodes_everywhere(window()); }
TEST(Decode, WindowsInSomeLayersWithPositionsOfTheirOwn) { expect_decodes_everywhere(some_windows()); }
TEST(Decode, LayersWithoutPositions) {
  expect_decodes_everywhere(smollm3());
  expect_decodes_everywhere(without_positions());
}
TEST(Decode, GptOssLike) {
  expect_decodes_everywhere(gpt_oss());
  ModelConfig latents = latent(0);
  latents.softmax = SoftmaxKind::kOffByOne;
  expect_decodes_everywhere(latents);
}
TEST(Decode, Olmo2Like) {
  expect_decodes_everywhere(olmo2(4));
  expect_decodes_everywhere(olmo2(1));
}
TEST(Decode, Gemma2Like) { expect_decodes_everywhere(gemma2()); }
TEST(Decode, Gemma3Like) { expect_decodes_everywhere(gemma3()); }
TEST(Decode, GraniteLike) { expect_decodes_everywhere(granite()); }
TEST(Decode, Glm4Like) { expect_decodes_everywhere(glm4()); }
TEST(Decode, Cohere2Like) { expect_decodes_everywhere(cohere2()); }
TEST(Decode, GptNeoxLike) { expect_decodes_everywhere(gpt_neox()); }
TEST(Decode, RotatedPairsOfAdjacentElements) {
  for (ModelConfig pairs : {gpt_neox(), latent(10)}) {
    pairs.rotary_interleaved = true;
    expect_decodes_everywhere(pairs);
  }
}
TEST(Decode, Phi2Like) { expect_decodes_everywhere(phi2()); }
TEST(Decode, YarnOfHalfOfEachHead) { expect_decodes_everywhere(yarn()); }
TEST(Decode, DynamicPositionsWithinTheOriginalLength) { expect_decodes_everywhere(dynamic_positions(kSeq)); }

TEST(Decode, LongRopeWithinTheOriginalLength) { expect_decodes_everywhere(long_rope(kSeq)); }

// Beyond the original length a prompt is rotated like a sequence of its own length.
TEST(Decode, DynamicPositionsTurnByTheLengthThatIsThere) {
  run_ranks(dims_of(1, 1), [&](RankContext& context) {
    const at::NoGradGuard no_grad;
    const auto model = make_transformer(dynamic_positions(4), context, {.seed = 7, .dtype = at::kDouble});
    model->set_training(false);
    const at::Tensor tokens_BS = (at::arange(kSeq, at::kLong).view({1, kSeq}) * 5 + 3).remainder(kVocab);
    for (const int64_t length : {kSeq, int64_t{7}, int64_t{3}}) {
      const at::Tensor prompt_BS = tokens_BS.narrow(1, 0, length);
      const auto cache = model->begin_decoding(1, kSeq);
      const at::Tensor want_BSV = model->logits({.tokens_BS = prompt_BS, .targets_BS = {}});
      EXPECT_LT(golden::relative_error(model->decode(*cache, prompt_BS), want_BSV.select(1, length - 1)), 1e-12);
    }
    // Logits of the first positions are others in a longer sequence.
    const auto first = [&](int64_t length) {
      return model->logits({.tokens_BS = tokens_BS.narrow(1, 0, length), .targets_BS = {}}).select(1, 3);
    };
    EXPECT_GT(golden::relative_error(first(4), first(kSeq)), 1e-3);
  });
}

// Several positions at once behind others. kept: positions that the first layer's cache has room for.
void expect_decodes_in_parts(const ModelConfig& config, int tp, std::optional<int64_t> kept) {
  run_ranks(dims_of(1, tp), [&](RankContext& context) {
    const at::NoGradGuard no_grad;
    const auto model = make_transformer(config, context, {.seed = 7, .dtype = at::kDouble});
    model->set_training(false);
    const at::Tensor tokens_BS = (at::arange(kSeq, at::kLong).view({1, kSeq}) * 5 + 3).remainder(kVocab);
    const at::Tensor want_BSV = model->logits({.tokens_BS = tokens_BS, .targets_BS = {}});
    const auto cache = model->begin_decoding(1, kSeq);
    if (kept) {
      EXPECT_EQ(cache->layers[0].keys.size(2), *kept);
    }
    int64_t at = 0;
    for (const int64_t count : {2, 6, 1, 3}) {
      const at::Tensor got_BV = model->decode(*cache, tokens_BS.narrow(1, at, count));
      at += count;
      EXPECT_LT(golden::relative_error(got_BV, want_BSV.select(1, at - 1)), 1e-12)
          << "after " << at << " positions, window " << config.window_size << ", chunk " << config.attention_chunk;
    }
    EXPECT_THROW(model->decode(*cache, tokens_BS.narrow(1, 0, 1)), Error) << "behind the last position";
  });
}

// Each position has a window of its own; the cache keeps what a window of the next one needs and no more.
TEST(Decode, WindowOfSeveralNewPositions) {
  for (const int64_t size : {1, 2, 4, 11, 12}) {
    ModelConfig config = window();
    config.window_size = size;
    expect_decodes_in_parts(config, 2, size < kSeq ? size - 1 : kSeq);
  }
}

TEST(Decode, LinearAttention) { expect_decodes_everywhere(qwen3_next()); }
TEST(Decode, StateSpaces) { expect_decodes_everywhere(nemotron_h()); }
TEST(Decode, Llama4Like) { expect_decodes_everywhere(llama4()); }
TEST(Decode, ChunksAndWindows) {
  for (const int64_t window : {2, 4, 7}) expect_decodes_everywhere(chunks_and_windows(window));
}
TEST(Decode, LatentAttentionInChunks) { expect_decodes_everywhere(latent_chunks()); }

// New positions of one chunk, of two, or up to its end; the cache keeps no more than a chunk.
TEST(Decode, ChunksOfSeveralNewPositions) {
  for (const ModelConfig& like : {llama4(), latent_chunks()}) {
    for (const int64_t chunk : {1, 2, 5, 11, 12}) {
      ModelConfig config = like;
      config.attention_chunk = chunk;
      const int64_t kept = chunk < kSeq ? chunk - 1 : kSeq;
      expect_decodes_in_parts(config, 1, config.mla.enabled() ? std::nullopt : std::optional(kept));
    }
  }
}

TEST(Decode, QwenLike) { expect_decodes_everywhere(qwen()); }
TEST(Decode, QwenLikeExperts) { expect_decodes_everywhere(qwen_experts()); }
TEST(Decode, Experts) {
  expect_decodes_everywhere(experts());
  expect_decodes_everywhere(experts_in_turn());
}

// ep over the tensor-parallel ranks, which hold the same tokens while decoding.
TEST(Decode, ExpertParallel) {
  ParallelDims dims = dims_of(1, 2);
  dims.ep = 2;
  run_ranks(dims, [&](RankContext& context) {
    const auto model = make_transformer(experts(), context, {.sequence_parallel = true, .dtype = at::kDouble});
    model->set_training(false);
    const at::Tensor tokens_BS = (at::arange(kSeq, at::kLong).view({1, kSeq}) * 5 + 3).remainder(kVocab);
    const at::Tensor want_BSV = model->logits({.tokens_BS = tokens_BS, .targets_BS = {}});
    const auto cache = model->begin_decoding(1, kSeq);
    for (int64_t at = 0; at < kSeq; ++at) {
      const at::Tensor got_BV = model->decode(*cache, tokens_BS.narrow(1, at, 1));
      EXPECT_LT(golden::relative_error(got_BV, want_BSV.select(1, at)), 1e-12) << "after " << at << " positions";
    }
  });
}

// Two layers in fp64: of latent attention 6 + 4 numbers whatever tp is, of grouped queries 2 x 4 groups x 4 over tp.
TEST(Decode, CacheBytes) {
  for (const int tp : {1, 2}) {
    run_ranks(dims_of(1, tp), [&](RankContext& context) {
      const LayeredOptions options{.dtype = at::kDouble};
      const auto bytes = [&](const ModelConfig& config) {
        return make_transformer(config, context, options)->begin_decoding(3, 8)->bytes_per_token();
      };
      EXPECT_EQ(bytes(latent(10)), 2 * 10 * 8);
      EXPECT_EQ(bytes(llama()), 2 * 2 * 4 * 4 * 8 / tp);
      EXPECT_EQ(bytes(qwen()), 2 * 2 * 4 * 6 * 8 / tp);
    });
  }
}

TEST(Decode, RefusesWhatDoesNotFit) {
  run_ranks(dims_of(1, 1), [&](RankContext& context) {
    for (const ModelConfig& config : {gpt2(), latent(0)}) {
      const auto model = make_transformer(config, context, {});
      EXPECT_THROW(model->begin_decoding(1, kSeq + 1), Error);
      const auto cache = model->begin_decoding(1, 4);
      EXPECT_THROW(model->decode(*cache, at::zeros({1, 5}, at::kLong)), Error);
      EXPECT_THROW(model->decode(*cache, at::zeros({2, 1}, at::kLong)), Error) << "another number of sequences";
      EXPECT_THROW(model->decode(*cache, at::full({1, 1}, kVocab, at::kLong)), Error) << "outside the vocabulary";
    }
    LayeredOptions first_half;
    first_half.stages = {{.first_layer = 0, .end_layer = 1, .is_first = true, .is_last = false}};
    const auto half = make_transformer(llama(), context, first_half);
    EXPECT_FALSE(half->can_decode());
    EXPECT_THROW(half->begin_decoding(1, 4), Error);
  });
}

}  // namespace
}  // namespace ranklab
