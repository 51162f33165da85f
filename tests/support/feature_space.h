// Runs as rows of choices, one for each feature (run_features.h); the reasons for which resolve() rejects some; and two
// ways to select rows: all of a product, or few that contain every pair of choices. Thread rule: main thread.
#pragma once
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/numbers/philox.h"
#include "tests/support/run_features.h"

namespace ranklab {

using Row = std::vector<size_t>;                                 // for each feature the index of its choice
using FeaturePair = std::tuple<size_t, size_t, size_t, size_t>;  // feature, choice, later feature, choice

struct FeatureSpace {
  std::vector<RunFeature> features;
  TrainConfig base;
  std::function<void(TrainConfig&)> finish;  // sizes that follow from the choices

  TrainConfig config_of(const Row& row) const;
  std::string refusal(const Row& row) const;  // why resolve() rejects it; "": it does not
  const std::string& chosen(const Row& row, const std::string& feature) const;
  std::string name_of(const Row& row) const;
  std::string name_of(const FeaturePair& pair) const;

  bool matters(size_t feature, const Row& row) const;
  Row settled(Row row) const;  // features without effect in the row get their first choice
  // All different rows with the choices of the named features, and the first choice of the others.
  std::vector<Row> product(const std::vector<std::string>& names) const;
  // The row with random choices for all features except the named ones, such that it is not rejected; the row itself if
  // none is found.
  Row with_random_others(const Row& row, const std::vector<std::string>& names, uint64_t seed) const;
};

// Rows found greedily, each with as many new pairs as can be found in a few random tries. Pairs that resolve() rejects
// in every row that was tried are listed separately.
class PairCover {
 public:
  explicit PairCover(const FeatureSpace& space);
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<FeaturePair>& refused() const { return refused_; }
  // Why the two choices exclude each other: the most frequent reason for rejection if the rows with one of them also
  // get the other.
  std::string reason(const FeaturePair& pair) const;

 private:
  void add_missing(size_t f, size_t g);
  Row random_row_with(const FeaturePair& pair);
  void cover(FeaturePair pair);  // a copy, because it erases the pair from missing_

  const FeatureSpace& space_;
  RandomStream random_{7, RandomPurpose::kTest, "rows", 0};
  uint64_t drawn_ = 0;
  std::set<FeaturePair> missing_;
  std::vector<Row> rows_;
  std::vector<FeaturePair> refused_;
};

}  // namespace ranklab
