#include "core/runtime/gemm_choice.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/base/system.h"
#include "core/nn/split_products.h"
#include "core/runtime/checkpoint/settings.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

class GemmChoiceTest : public testing::Test {
 protected:
  void TearDown() override { use_gemm(GemmLibrary::kMkl); }
};

TEST_F(GemmChoiceTest, MeasuresAndLeavesTheSettingAlone) {
  const std::vector<GemmShape> shapes = {{512, 384, 128, 8}, {512, 704, 128, 8}, {4096, 256, 128, 1}};
  const GemmChoice choice = measure_gemm(shapes);
  EXPECT_NE(choice.reason.find("oneDNN"), std::string::npos) << choice.reason;
  if (!onednn_available()) {
    EXPECT_EQ(choice.reason, "MKL: " + why_no_onednn());
  }
  EXPECT_EQ(gemm_in_use(), GemmLibrary::kMkl);
}

// The same command gives the same bits: the choice depends on no measured time.
TEST_F(GemmChoiceTest, TheUsualOneFollowsFromTheProcessor) {
  const bool intel = processor_vendor() == "GenuineIntel";
  EXPECT_EQ(processor_vendor().size(), 12u);
  EXPECT_EQ(usual_gemm().library, intel || !onednn_available() ? GemmLibrary::kMkl : GemmLibrary::kOneDnn);
  EXPECT_EQ(gemm_in_use(), GemmLibrary::kMkl);
}

TEST(OtherGemm, IsSaidWhenARunGoesOn) {
  CheckpointManifest manifest;
  TrainConfig config;
  config.gemm = "mkl";
  EXPECT_EQ(other_gemm(manifest, config), "") << "imported";
  manifest.config["sim.gemm"] = "mkl";
  EXPECT_EQ(other_gemm(manifest, config), "");
  manifest.config["sim.gemm"] = "onednn";
  EXPECT_NE(other_gemm(manifest, config).find("--gemm onednn keeps them"), std::string::npos);
}

TEST_F(GemmChoiceTest, NothingToMeasureIsMkl) { EXPECT_EQ(measure_gemm({}).library, GemmLibrary::kMkl); }

// A product in two halves is their sum, of both libraries and of fp16, written, added and returned.
TEST_F(GemmChoiceTest, SplitProductsAreSumsOfHalves) {
  for (const GemmLibrary library : {GemmLibrary::kMkl, GemmLibrary::kOneDnn}) {
    if (library == GemmLibrary::kOneDnn && !onednn_available()) continue;
    use_gemm(library);
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
      const at::Tensor a = at::sin(at::arange(6 * 37, at::kFloat)).view({6, 37}).to(type),
                       b = at::cos(at::arange(5 * 37, at::kFloat)).view({5, 37}).to(type).t();
      const at::Tensor want = gemm(a.narrow(1, 0, 18), b.narrow(0, 0, 18)) +
                              gemm(a.narrow(1, 18, 19), b.narrow(0, 18, 19)),
                       whole = gemm(a, b), written = at::empty_like(want), added = at::ones_like(want);
      const SplitProducts split;
      EXPECT_TRUE(at::equal(gemm(a, b), want)) << type;
      EXPECT_TRUE(at::equal(gemm(a.narrow(1, 0, 1), b.narrow(0, 0, 1)), a.narrow(1, 0, 1) * b.narrow(0, 0, 1)));
      gemm_into(written, a, b);
      EXPECT_TRUE(at::equal(written, want)) << type;
      gemm_add(added, a, b);
      EXPECT_TRUE(at::equal(added, want + 1)) << type;
      EXPECT_FALSE(at::equal(whole, want)) << type << ": the order of the sum is another";
    }
  }
  EXPECT_FALSE(products_are_split);
}

// Both libraries compute in fp32: 1e-5 of the largest element against fp64 (bf16 would miss it by 100x), transposed
// operands and odd sizes included.
TEST_F(GemmChoiceTest, BothLibrariesMultiplyInFp32) {
  if (!onednn_available()) GTEST_SKIP() << why_no_onednn();
  for (const auto& [m, n, k] :
       {std::tuple{64, 48, 128}, std::tuple{1, 7, 5}, std::tuple{33, 1, 17}, std::tuple{128, 256, 1000}}) {
    const at::Tensor a = at::sin(at::arange(m * k, at::kFloat)).view({m, k}),
                     b = at::cos(at::arange(k * n, at::kFloat)).view({k, n});
    const at::Tensor want = at::mm(a.to(at::kDouble), b.to(at::kDouble));
    for (const GemmLibrary library : {GemmLibrary::kMkl, GemmLibrary::kOneDnn}) {
      use_gemm(library);
      const at::Tensor plain = gemm(a, b), transposed = gemm(a.t().contiguous().t(), b.t().contiguous().t());
      EXPECT_LT(((plain.to(at::kDouble) - want).abs().max() / want.abs().max()).item<double>(), 1e-5)
          << m << " " << n << " " << k;
      EXPECT_LT(((transposed.to(at::kDouble) - want).abs().max() / want.abs().max()).item<double>(), 1e-5);
    }
  }
}

// A plan knows no scratch memory, and a GPU's products have none of oneDNN's.
TEST_F(GemmChoiceTest, OneDnnsScratchIsNoMemoryOfARank) {
  if (!onednn_available()) GTEST_SKIP() << why_no_onednn();
  install_booking_allocator();
  const auto book = std::make_shared<MemoryBook>();
  set_thread_memory_book(book);
  use_gemm(GemmLibrary::kOneDnn);
  for (const int64_t rows : {128, 192, 352}) {
    const at::Tensor dy = at::ones({512, rows}), x = at::ones({512, 128}), dw = at::ones({rows, 128});
    const int64_t held = book->total_bytes();
    book->reset_peaks();
    gemm_add(dw, dy.t(), x);
    EXPECT_EQ(book->peak_bytes(), held) << rows;
  }
  set_thread_memory_book(nullptr);
}

// Rows of several ranks that are apart in memory, as in pieces of their positions.
TEST_F(GemmChoiceTest, GroupsOfRowsLieApart) {
  for (const GemmLibrary library : {GemmLibrary::kMkl, GemmLibrary::kOneDnn}) {
    if (library == GemmLibrary::kOneDnn && !onednn_available()) continue;
    use_gemm(library);
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      const at::Tensor a = at::sin(at::arange(3 * 9 * 5, at::kDouble)).view({3, 9, 5}).to(type);
      const at::Tensor b = at::cos(at::arange(5 * 7, at::kDouble)).view({5, 7}).to(type);
      const at::Tensor out = at::full({3, 11, 7}, 2, type);
      gemm_groups_into(out.narrow(1, 6, 4), a.narrow(1, 2, 4), b);
      const at::Tensor want = at::matmul(a.narrow(1, 2, 4).to(at::kDouble), b.to(at::kDouble));
      EXPECT_LT((out.narrow(1, 6, 4) - want).abs().max().item<double>(), type == at::kBFloat16 ? 2e-2 : 1e-5) << type;
      EXPECT_TRUE(out.narrow(1, 0, 6).eq(2).all().item<bool>() && out.narrow(1, 10, 1).eq(2).all().item<bool>());
    }
  }
}

// LibTorch has it only for processors with AVX-512: elsewhere the request is rejected before a rank starts.
TEST_F(GemmChoiceTest, OneDnnIsRefusedWhereItDoesNotWork) {
  if (onednn_available()) GTEST_SKIP() << "oneDNN works here";
  EXPECT_THROW(use_gemm(GemmLibrary::kOneDnn), Error);
  EXPECT_EQ(why_no_onednn().find("Exception raised from"), std::string::npos) << why_no_onednn();
}

TEST_F(GemmChoiceTest, OtherTypesAndEmptyMatricesTakeTheCommonPath) {
  if (onednn_available()) use_gemm(GemmLibrary::kOneDnn);
  EXPECT_EQ(gemm(at::ones({2, 3}, at::kDouble), at::ones({3, 4}, at::kDouble)).scalar_type(), at::kDouble);
  const at::Tensor empty = gemm(at::ones({0, 3}), at::ones({3, 4}));
  EXPECT_EQ(empty.sizes(), (std::vector<int64_t>{0, 4}));
}

}  // namespace
}  // namespace ranklab
