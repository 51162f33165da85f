// The runs of a slice, held against the definition element by element, for random shapes, cuts and pieces.
#include "core/checkpoint/slices.h"

#include <gmock/gmock.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

namespace ranklab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Global index of every local element; -1 for padding.
std::vector<int64_t> elements_of(const std::vector<int64_t>& shape, const SlicePartition& partition) {
  const size_t dim = partition.dim < 0 ? 0 : static_cast<size_t>(partition.dim);
  std::vector<int64_t> rows;
  for (const auto& [begin, end] : partition.ranges) {
    for (int64_t row = begin; row < end; ++row) rows.push_back(row < shape[dim] ? row : -1);
  }
  if (partition.dim < 0) {
    rows.resize(static_cast<size_t>(shape[0]));
    std::iota(rows.begin(), rows.end(), 0);
  }
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < shape.size(); ++i) (i < dim ? outer : inner) *= i == dim ? 1 : shape[i];
  std::vector<int64_t> all;
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t row : rows) {
      for (int64_t i = 0; i < inner; ++i) all.push_back(row < 0 ? -1 : (o * shape[dim] + row) * inner + i);
    }
  }
  return all;
}

int64_t pick(std::mt19937& random, int64_t from, int64_t to) {
  return std::uniform_int_distribution<int64_t>(from, to)(random);
}

TensorSlice random_slice(std::mt19937& random, const std::vector<int64_t>& shape) {
  TensorSlice slice;
  const auto dims = static_cast<int64_t>(shape.size());
  slice.partition.dim = static_cast<int>(pick(random, -1, dims - 1));
  if (slice.partition.dim >= 0) {
    const int64_t length = shape[static_cast<size_t>(slice.partition.dim)];
    for (int64_t i = pick(random, 1, 2); i > 0; --i) {
      const int64_t begin = pick(random, 0, length);
      slice.partition.ranges.emplace_back(begin, pick(random, begin + 1, length + 2));
    }
  }
  const int64_t local = local_elements(shape, slice.partition);
  slice.begin = pick(random, 0, local - 1);
  slice.end = pick(random, slice.begin + 1, local);
  return slice;
}

TEST(Slices, RunsAreTheElementsOfTheDefinition) {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::vector<int64_t> shape;
    for (int64_t dims = pick(random, 1, 3); dims > 0; --dims) shape.push_back(pick(random, 1, 5));
    const TensorSlice slice = random_slice(random, shape);
    ASSERT_EQ(fault_of_slice(shape, slice), "");
    const std::vector<int64_t> all = elements_of(shape, slice.partition);
    ASSERT_EQ(static_cast<int64_t>(all.size()), local_elements(shape, slice.partition));
    std::multimap<int64_t, int64_t> want, got;  // global, at
    for (int64_t at = slice.begin; at < slice.end; ++at) {
      if (all[static_cast<size_t>(at)] >= 0) want.emplace(all[static_cast<size_t>(at)], at - slice.begin);
    }
    int64_t previous = -1;
    for (const SliceRun& run : slice_runs(shape, slice)) {
      EXPECT_GE(run.global, previous);
      previous = run.global;
      for (int64_t k = 0; k < run.length; ++k) got.emplace(run.global + k, run.at + k);
    }
    // Ranges may overlap here, so that equal keys come in any order.
    std::set<std::pair<int64_t, int64_t>> want_set(want.begin(), want.end()), got_set(got.begin(), got.end());
    ASSERT_EQ(got_set, want_set);
    ASSERT_EQ(got.size(), want.size());
  }
}

TEST(Slices, NeighboursAreOneRun) {
  const std::vector<int64_t> shape = {4, 6};
  const TensorSlice rows{.partition = {.dim = 0, .ranges = {{1, 3}}}, .end = 12};
  EXPECT_THAT(slice_runs(shape, rows), ElementsAre(SliceRun{.global = 6, .at = 0, .length = 12}));
  const TensorSlice columns{.partition = {.dim = 1, .ranges = {{2, 4}}}, .begin = 1, .end = 5};
  EXPECT_THAT(slice_runs(shape, columns), ElementsAre(SliceRun{3, 0, 1}, SliceRun{8, 1, 2}, SliceRun{14, 3, 1}));
}

TEST(Slices, WhereTwoMeet) {
  std::mt19937 random(11);
  for (int i = 0; i < 1000; ++i) {
    const std::vector<int64_t> shape = {pick(random, 1, 6), pick(random, 1, 6)};
    const auto disjoint = [&](int dim) {  // as layouts cut: ranges that do not overlap
      const int64_t length = shape[static_cast<size_t>(dim)], cut = pick(random, 1, length);
      TensorSlice slice{.partition = {.dim = dim, .ranges = {{0, cut}, {cut, length + 1}}}};
      slice.end = local_elements(shape, slice.partition);
      return slice;
    };
    const TensorSlice from = disjoint(static_cast<int>(pick(random, 0, 1))),
                      to = disjoint(static_cast<int>(pick(random, 0, 1)));
    const std::vector<int64_t> a = elements_of(shape, from.partition), b = elements_of(shape, to.partition);
    std::vector<int64_t> copied(b.size(), -1);
    for (const SliceOverlap& overlap : meet(slice_runs(shape, from), slice_runs(shape, to))) {
      for (int64_t k = 0; k < overlap.length; ++k)
        copied[static_cast<size_t>(overlap.to_at + k)] = a[static_cast<size_t>(overlap.from_at + k)];
    }
    ASSERT_EQ(copied, b);  // padding was not written
  }
}

TEST(Slices, HolesAndOverlapsAreNamed) {
  const auto piece = [](int64_t begin, int64_t length) { return std::vector<SliceRun>{{begin, 0, length}}; };
  const auto fault = [](std::vector<std::vector<SliceRun>> slices) { return cover_error(10, slices); };
  EXPECT_EQ(fault({piece(4, 6), piece(0, 4)}), "");
  EXPECT_THAT(fault({piece(0, 4), piece(5, 5)}), HasSubstr("no file holds element 4"));
  EXPECT_THAT(fault({piece(0, 4), piece(3, 7)}), HasSubstr("element 3 is held twice"));
  EXPECT_THAT(fault({piece(0, 9)}), HasSubstr("no file holds element 9"));
  EXPECT_THAT(fault({}), HasSubstr("no file holds element 0"));
  EXPECT_THAT(fault({piece(0, 11)}), HasSubstr("element 10 lies outside"));
}

TEST(Slices, WhatIsNoSliceIsRefused) {
  const std::vector<int64_t> shape = {4, 6};
  constexpr int64_t kHuge = int64_t{1} << 62;
  const auto fault = [&](SlicePartition partition, int64_t begin, int64_t end) {
    return fault_of_slice(shape, {.partition = std::move(partition), .begin = begin, .end = end});
  };
  EXPECT_EQ(fault({}, 0, 24), "");
  EXPECT_NE(fault({}, 0, 25), "");
  EXPECT_NE(fault({}, 3, 3), "");
  EXPECT_NE(fault({}, -1, 3), "");
  EXPECT_NE(fault({.dim = 2, .ranges = {{0, 1}}}, 0, 1), "");
  EXPECT_NE(fault({.dim = -2}, 0, 1), "");
  EXPECT_NE(fault({.dim = 0}, 0, 1), "");
  EXPECT_NE(fault({.dim = -1, .ranges = {{0, 1}}}, 0, 1), "");
  EXPECT_NE(fault({.dim = 0, .ranges = {{2, 2}}}, 0, 1), "");
  EXPECT_NE(fault({.dim = 0, .ranges = {{-1, 2}}}, 0, 1), "");
  EXPECT_NE(fault({.dim = 0, .ranges = {{0, kHuge}}}, 0, 1), "");
  EXPECT_NE(fault({.dim = 0, .ranges = {{0, kHuge}, {0, kHuge}}}, 0, 1), "");
  EXPECT_NE(fault({.dim = 0, .ranges = {{kHuge, kHuge + 1}}}, 0, 1), "");
  EXPECT_NE(fault_of_slice(std::vector<int64_t>{kHuge, 4}, {.end = 1}), "");
  EXPECT_NE(fault_of_slice(std::vector<int64_t>{0}, {.end = 1}), "");
  EXPECT_EQ(fault_of_slice(std::vector<int64_t>{}, {.end = 1}), "");  // a scalar
}

}  // namespace
}  // namespace ranklab
