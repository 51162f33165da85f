// Which documents are in a batch: by hand, as Megatron-LM has them.
#include "core/runtime/document_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/sim/aten.h"

namespace ranklab {
namespace {

using testing::ElementsAre;

constexpr int64_t kDocumentEnd = 3;

at::Tensor rows(std::vector<int64_t> tokens) { return at::tensor(tokens, at::kLong).view({2, 6}); }

class TwoRows : public RankData {
 public:
  Batch train_batch(int64_t, int64_t) override {
    return {.tokens_BS = rows({5, 3, 7, 3, 3, 9, 3, 1, 2, 4, 5, 3}),
            .targets_BS = rows({3, 7, 3, 3, 9, 1, 1, 2, 4, 5, 3, 8})};
  }
  bool has_validation() const override { return true; }
  Batch validation_batch(int64_t, int64_t) override { return train_batch(0, 0); }
  std::optional<int64_t> global_tokens_per_batch() const override { return 12; }
};

Batch marked(const DocumentSettings& settings) {
  return with_documents(std::make_unique<TwoRows>(), settings)->train_batch(0, 0);
}

TEST(DocumentData, ADocumentBeginsBehindTheEndOfAnother) {
  const Batch batch = marked({.reset_attention_mask = true, .reset_position_ids = true, .eod_token = kDocumentEnd});
  ASSERT_NE(batch.documents, nullptr);
  EXPECT_TRUE(batch.documents->separate);
  EXPECT_THAT(batch.documents->starts, ElementsAre(ElementsAre(0, 2, 4, 5), ElementsAre(0, 1)))
      << "an end at the end begins nothing";
  EXPECT_TRUE(at::equal(batch.documents->position_BS, rows({0, 1, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4})));
  EXPECT_TRUE(at::equal(batch.targets_BS, TwoRows().train_batch(0, 0).targets_BS)) << "all losses count";
}

TEST(DocumentData, WhatFollowsAnEndHasNoLoss) {
  const auto data = with_documents(std::make_unique<TwoRows>(), {.eod_mask_loss = true, .eod_token = kDocumentEnd});
  for (const Batch& batch : {data->train_batch(0, 0), data->validation_batch(0, 0)}) {
    EXPECT_EQ(batch.documents, nullptr) << "attention is left alone";
    EXPECT_TRUE(at::equal(batch.targets_BS, rows({3, -100, 3, -100, -100, 1, -100, 2, 4, 5, 3, -100})));
  }
  EXPECT_EQ(data->global_tokens_per_batch(), std::nullopt) << "losses are counted";
}

TEST(DocumentData, EachSettingDoesItsOwn) {
  const Batch masked = marked({.reset_attention_mask = true, .eod_token = kDocumentEnd});
  EXPECT_FALSE(masked.documents->position_BS.defined());
  const Batch positions = marked({.reset_position_ids = true, .eod_token = kDocumentEnd});
  EXPECT_FALSE(positions.documents->separate);
  EXPECT_TRUE(positions.documents->position_BS.defined());
  EXPECT_TRUE(with_documents(std::make_unique<TwoRows>(), {.reset_position_ids = true})->marks_documents())
      << "stages in the middle of a pipeline read them, too";
  EXPECT_FALSE(with_documents(std::make_unique<TwoRows>(), {.eod_mask_loss = true})->marks_documents());
  auto data = std::make_unique<TwoRows>();
  const RankData* same = data.get();
  EXPECT_EQ(with_documents(std::move(data), {.eod_token = kDocumentEnd}).get(), same) << "nothing is asked";
}

}  // namespace
}  // namespace ranklab
