// Runs as rows of choices, one of each feature (run_features.h), the reasons of resolve() for refusing some, and two
// ways to take rows: all of a product, or few that hold every pair of choices. Thread rule: main thread.
#pragma once
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/numbers/philox.h"
#include "tests/support/run_features.h"

namespace ranklab {

using Row = std::vector<size_t>;                                 // of each feature its choice
using FeaturePair = std::tuple<size_t, size_t, size_t, size_t>;  // feature, choice, later feature, choice

struct FeatureSpace {
  std::vector<RunFeature> features;
  TrainConfig base;
  std::function<void(TrainConfig&)> finish;  // sizes that follow from the choices

  TrainConfig config_of(const Row& row) const;
  std::string refusal(const Row& row) const;  // why resolve() refuses it; "": it does not
  const std::string& chosen(const Row& row, const std::string& feature) const;
  std::string name_of(const Row& row) const;
  std::string name_of(const FeaturePair& pair) const;

  bool matters(size_t feature, const Row& row) const;
  Row settled(Row row) const;  // features that say nothing in it have their first choice
  // Each different row of the named features' choices, with the first choice of the others.
  std::vector<Row> product(const std::vector<std::string>& names) const;
  // The row with random choices of all features but the named ones, of which it is not refused; itself if none is
  // found.
  Row with_random_others(const Row& row, const std::vector<std::string>& names, uint64_t seed) const;
};

// Rows found greedily, each bringing as many new pairs as a few random tries allow. Pairs that resolve() refuses in
// every row tried are told apart.
class PairCover {
 public:
  explicit PairCover(const FeatureSpace& space);
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<FeaturePair>& refused() const { return refused_; }
  // Why the two do not go together: what refuses most of the rows that were taken with one of them, once they get the
  // other.
  std::string reason(const FeaturePair& pair) const;

 private:
  void add_missing(size_t f, size_t g);
  Row random_row_with(const FeaturePair& pair);
  void cover(const FeaturePair& pair);

  const FeatureSpace& space_;
  RandomStream random_{7, RandomPurpose::kTest, "rows", 0};
  uint64_t drawn_ = 0;
  std::set<FeaturePair> missing_;
  std::vector<Row> rows_;
  std::vector<FeaturePair> refused_;
};

}  // namespace ranklab
