// The helper with which suites compare runs detects violations: copies that differ by a bit, padding that is not zero,
// elements that no rank has.
#include "tests/support/gathered_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/sim/aten.h"

namespace ranklab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

at::Tensor numbers(int64_t count) { return at::arange(count, at::kDouble); }

// Each of `count` ranks puts its part of `whole`, `pieces` runs of elements a part.
void put_parts(GatheredTensors& gathered, const at::Tensor& whole, int dim, int count, int64_t pieces) {
  for (int rank = 0; rank < count; ++rank) {
    const Parameter parameter{.name = "w", .data = {}, .partition = shard_dim(whole.sizes().vec(), dim, rank, count)};
    const at::Tensor part = whole.chunk(count, dim)[static_cast<size_t>(rank)].contiguous().view({-1});
    int64_t begin = 0;
    for (const at::Tensor& piece : part.chunk(pieces)) {
      gathered.put(0, parameter, begin, piece);
      begin += piece.numel();
    }
  }
}

TEST(GatheredTensors, PutPartsAndPiecesTogether) {
  const at::Tensor whole = numbers(6 * 4 * 2).view({6, 4, 2});
  for (const int dim : {0, 1, 2}) {
    for (const int64_t pieces : {1, 5}) {
      GatheredTensors gathered("weight");
      put_parts(gathered, whole, dim, 2, pieces);
      put_parts(gathered, whole, 0, 1, 3);  // and a rank with all of it
      const StepTensors all = gathered.take();
      EXPECT_TRUE(at::equal(all.at({0, "w"}), whole)) << dim << " " << pieces;
      EXPECT_THAT(gathered.faults(), IsEmpty());
    }
  }
}

TEST(GatheredTensors, TellACopyThatDiffersByABit) {
  const Parameter parameter{.name = "w", .data = {}, .partition = replicated({4})};
  GatheredTensors gathered("weight");
  at::Tensor copy = numbers(4);
  gathered.put(2, parameter, 0, copy);
  gathered.put(2, parameter, 1, copy.narrow(0, 1, 2));
  EXPECT_THAT(gathered.faults(), IsEmpty());
  copy.mutable_data_ptr<double>()[2] += 1e-15;
  gathered.put(2, parameter, 1, copy.narrow(0, 1, 2));
  EXPECT_THAT(gathered.faults(), ElementsAre(HasSubstr("weight of w at step 2: copies differ")));
}

TEST(GatheredTensors, TellPaddingThatIsNotZeroAndWhatIsMissing) {
  const Parameter last{
      .name = "w", .data = {}, .partition = shard_padded({5, 2}, 1, 2)};  // rows 3, 4 and one of padding
  GatheredTensors gathered("gradient");
  at::Tensor part = numbers(6);
  part.narrow(0, 4, 2).zero_();
  gathered.put(0, last, 0, part);
  EXPECT_THAT(gathered.faults(), IsEmpty());
  part.mutable_data_ptr<double>()[5] = 1;
  gathered.put(0, last, 3, part.narrow(0, 3, 3));
  EXPECT_THAT(gathered.faults(), ElementsAre(HasSubstr("padding is not zero")));
  gathered.take();
  EXPECT_THAT(gathered.faults(), ElementsAre(testing::_, HasSubstr("elements are on no rank")));
}

}  // namespace
}  // namespace ranklab
