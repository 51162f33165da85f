#include "tests/support/feature_space.h"

#include <algorithm>

#include "core/base/error.h"

namespace ranklab {
namespace {

constexpr int kTries = 40, kTriesBeforeRefused = 400;

std::vector<FeaturePair> pairs_of(const Row& row) {
  std::vector<FeaturePair> pairs;
  for (size_t f = 0; f < row.size(); ++f)
    for (size_t g = f + 1; g < row.size(); ++g) pairs.emplace_back(f, row[f], g, row[g]);
  return pairs;
}

bool holds(const Row& row, const FeaturePair& pair) {
  const auto [f, i, g, j] = pair;
  return row[f] == i && row[g] == j;
}

}  // namespace

TrainConfig FeatureSpace::config_of(const Row& row) const {
  TrainConfig c = base;
  for (size_t f = 0; f < row.size(); ++f) features[f].choices[row[f]].change(c);
  finish(c);
  return c;
}

std::string FeatureSpace::refusal(const Row& row) const {
  try {
    resolve(config_of(row));
    return {};
  } catch (const Error& error) {
    return error.text().what;
  }
}

const std::string& FeatureSpace::chosen(const Row& row, const std::string& feature) const {
  const size_t f = feature_index(features, feature);
  return features[f].choices[row[f]].name;
}

std::string FeatureSpace::name_of(const Row& row) const {
  std::string text;
  for (size_t f = 0; f < row.size(); ++f) text += features[f].name + " " + features[f].choices[row[f]].name + "; ";
  return text;
}

std::string FeatureSpace::name_of(const FeaturePair& pair) const {
  const auto [f, i, g, j] = pair;
  return features[f].name + " " + features[f].choices[i].name + " with " + features[g].name + " " +
         features[g].choices[j].name;
}

bool FeatureSpace::matters(size_t feature, const Row& row) const {
  const RunFeature& one = features[feature];
  if (one.of.empty()) return true;
  const size_t above = feature_index(features, one.of);
  TrainConfig c = base;
  features[above].choices[row[above]].change(c);
  return one.matters(c);
}

Row FeatureSpace::settled(Row row) const {
  for (size_t f = 0; f < row.size(); ++f)
    if (row[f] > 0 && !matters(f, row)) row[f] = 0;
  return row;
}

std::vector<Row> FeatureSpace::product(const std::vector<std::string>& names) const {
  std::vector<Row> rows = {Row(features.size(), 0)};
  for (const std::string& name : names) {
    const size_t f = feature_index(features, name);
    std::vector<Row> more;
    for (const Row& row : rows) {
      const size_t choices = matters(f, row) ? features[f].choices.size() : 1;
      for (size_t i = 0; i < choices; ++i) more.push_back(row), more.back()[f] = i;
    }
    rows = std::move(more);
  }
  return rows;
}

Row FeatureSpace::with_random_others(const Row& row, const std::vector<std::string>& names, uint64_t seed) const {
  const RandomStream random(seed, RandomPurpose::kTest, "other features", 0);
  uint64_t drawn = 0;
  for (int i = 0; i < kTries; ++i) {
    Row other = row;
    for (size_t f = 0; f < row.size(); ++f)
      if (std::ranges::find(names, features[f].name) == names.end())
        other[f] = random.below(drawn++, features[f].choices.size());
    other = settled(other);
    if (refusal(other).empty()) return other;
  }
  return row;
}

PairCover::PairCover(const FeatureSpace& space) : space_(space) {
  for (size_t f = 0; f < space.features.size(); ++f)
    for (size_t g = f + 1; g < space.features.size(); ++g) add_missing(f, g);
  while (!missing_.empty()) cover(*missing_.begin());
}

void PairCover::add_missing(size_t f, size_t g) {
  const RunFeature& later = space_.features[g];
  for (size_t i = 0; i < space_.features[f].choices.size(); ++i) {
    Row row(space_.features.size(), 0);
    row[f] = i;
    // Leaves out pairs that no row can have.
    const bool first_only = later.of == space_.features[f].name && !space_.matters(g, row);
    for (size_t j = 0; j < (first_only ? 1 : later.choices.size()); ++j) missing_.insert({f, i, g, j});
  }
}

std::string PairCover::reason(const FeaturePair& pair) const {
  const auto [f, i, g, j] = pair;
  std::map<std::string, int> votes;
  for (Row row : rows_) {
    if (row[f] != i && row[g] != j) continue;
    row[f] = i;
    row[g] = j;
    if (holds(space_.settled(row), pair)) ++votes[space_.refusal(row)];
  }
  const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
  return most == votes.end() ? "" : most->first;
}

Row PairCover::random_row_with(const FeaturePair& pair) {
  Row row(space_.features.size());
  // Draws again if one of the two features has no effect in the row, because such a run does not test the pair.
  for (int i = 0; i < kTriesBeforeRefused; ++i) {
    for (size_t f = 0; f < row.size(); ++f) row[f] = random_.below(drawn_++, space_.features[f].choices.size());
    row[std::get<0>(pair)] = std::get<1>(pair);
    row[std::get<2>(pair)] = std::get<3>(pair);
    row = space_.settled(row);
    if (holds(row, pair)) break;
  }
  return row;
}

void PairCover::cover(FeaturePair pair) {
  Row best;
  size_t most = 0;
  for (int i = 0; i < kTries || (most == 0 && i < kTriesBeforeRefused); ++i) {
    const Row row = random_row_with(pair);
    if (!holds(row, pair)) break;
    const std::vector<FeaturePair> pairs = pairs_of(row);
    const auto fresh =
        static_cast<size_t>(std::ranges::count_if(pairs, [&](const FeaturePair& p) { return missing_.contains(p); }));
    if (fresh <= most || !space_.refusal(row).empty()) continue;
    best = row;
    most = fresh;
  }
  if (most == 0) {
    missing_.erase(pair);
    refused_.push_back(pair);
    return;
  }
  for (const FeaturePair& one : pairs_of(best)) missing_.erase(one);
  rows_.push_back(best);
}

}  // namespace ranklab
