// 16-bit numbers added to fp32 sums: LibTorch's bits, without its copy in the wider type.
#include "core/nn/accumulate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

constexpr int64_t kCount = 100'003;

TEST(Accumulate, HasTheBitsOfLibTorch) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    at::Tensor x = at::arange(kCount, at::kFloat).sub_(kCount / 2).mul_(1e-3);
    x[0] = std::numeric_limits<float>::infinity();
    x[1] = std::numeric_limits<float>::quiet_NaN();
    x[2] = 1e-7;  // subnormal in fp16
    x = x.to(type);
    const at::Tensor start = at::arange(kCount, at::kFloat).sin_();
    const at::Tensor want = start + x.to(at::kFloat), got = start.clone();
    accumulate(got, x, false);
    EXPECT_TRUE(at::equal(got.narrow(0, 2, kCount - 2), want.narrow(0, 2, kCount - 2))) << at::toString(type);
    EXPECT_EQ(got[0].item<float>(), want[0].item<float>());
    EXPECT_TRUE(std::isnan(got[1].item<float>()));
    accumulate(got, x, true);
    EXPECT_TRUE(at::equal(got.narrow(0, 2, kCount - 2), x.to(at::kFloat).narrow(0, 2, kCount - 2)));
  }
}

TEST(Accumulate, HoldsNothingMeanwhile) {
  install_booking_allocator();
  const auto book = std::make_shared<MemoryBook>(/*books_host=*/true);
  set_thread_memory_book(book);
  const at::Tensor sum = at::zeros({kCount}), x = at::ones({kCount}, at::kBFloat16);
  const int64_t held = book->peak_bytes();
  EXPECT_GE(held, kCount * 6);
  accumulate(sum, x, false);
  EXPECT_EQ(book->peak_bytes(), held);
  set_thread_memory_book(nullptr);
}

}  // namespace
}  // namespace ranklab
