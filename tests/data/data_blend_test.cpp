// Blends against what their weights promise: counts after every prefix, each sequence of a set once in a pass, and the
// same global batches in every split.
#include "core/data/data_blend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/data/batch_source.h"

namespace ranklab {
namespace {

// Tokens of set s are s x 1000 and on; a sequence of it begins with s x 1000 + its number.
class Marked : public TokenSequence {
 public:
  Marked(int64_t set, int64_t sequences, int64_t length) : set_(set), sequences_(sequences), length_(length) {}
  int64_t size() const override { return sequences_ * length_ + 1; }
  void read(int64_t begin, std::span<int64_t> out) const override {
    for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i)
      out[static_cast<size_t>(i)] = set_ * 1000 + (begin + i) / length_;
  }

 private:
  int64_t set_, sequences_, length_;
};

BlendedSets marked_sets(const std::vector<std::pair<double, int64_t>>& weights_and_sizes, double validation = 0) {
  BlendedSets data;
  std::vector<double> weights;
  for (const auto& [weight, size] : weights_and_sizes) {
    const auto tokens = std::make_shared<Marked>(static_cast<int64_t>(weights.size()), size, 4);
    data.sets.push_back(std::make_shared<TokenDataset>(tokens, 4, validation));
    weights.push_back(weight);
  }
  data.blend = std::make_shared<DataBlend>(weights);
  return data;
}

TEST(DataBlend, AfterEveryPrefixEachSetHasItsShareButForLessThanOne) {
  const std::vector<std::vector<double>> blends = {
      {1},          {0.7, 0.3},       {0.5, 0.5},     {1, 1, 1},
      {5, 3, 2, 1}, {0.01, 0.9, 0.4}, {1e-9, 1, 1},   {0.335, 0.23, 0.156, 0.111, 0.099, 0.051, 0.018},
      {1e6, 1},     {8, 4, 2, 1, 1},  {1, 1, 1, 997}, {508, 292, 146, 3, 1, 1, 1}};
  for (const std::vector<double>& weights : blends) {
    const DataBlend blend(weights);
    double sum = 0;
    for (const double weight : weights) sum += weight;
    std::vector<int64_t> counts(weights.size());
    int64_t position = 0;
    for (const auto& [set, index] : blend.places(0, 5000)) {
      EXPECT_EQ(index, counts[set]++);
      ++position;
      for (size_t i = 0; i < weights.size(); ++i)
        ASSERT_LT(std::abs(weights[i] / sum * static_cast<double>(position) - static_cast<double>(counts[i])), 1)
            << "set " << i << " of " << weights.size() << " after " << position;
    }
    EXPECT_EQ(blend.counts_before(5000), counts);
  }
}

TEST(DataBlend, APlaceDoesNotDependOnWhatWasAskedBefore) {
  const DataBlend whole({0.6, 0.3, 0.1}), parts({0.6, 0.3, 0.1});
  const std::vector<DataBlend::Place> all = whole.places(0, 4000);
  for (const int64_t begin : {3990, 0, 1020, 1024, 2047, 1}) {
    const std::vector<DataBlend::Place> some = parts.places(begin, 10);
    for (size_t i = 0; i < some.size(); ++i) {
      EXPECT_EQ(some[i].set, all[static_cast<size_t>(begin) + i].set);
      EXPECT_EQ(some[i].index, all[static_cast<size_t>(begin) + i].index);
    }
  }
}

TEST(DataBlend, RefusesWeightsThatAreNone) {
  for (const double weight :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(DataBlend({1, weight}), Error) << weight;
  EXPECT_THROW(DataBlend({1e308, 1e308}), Error);
  EXPECT_THROW(DataBlend({1, 1}).counts_before((int64_t{1} << 36) + 1), Error);
}

TEST(DataBlend, EachSetHasPassesOfItsOwn) {
  const BatchSource source(marked_sets({{3, 60}, {1, 7}}), {.micro_batch_size = 8}, 5);
  std::map<std::pair<size_t, int64_t>, std::vector<int64_t>> passes;  // of a set and an epoch: its sequences
  for (int64_t step = 0; step < 20; ++step) {
    const TokenBatch batch = source.train(step, 0, 0);
    for (const DrawnSample& drawn : source.draw(step, 0, 0)) {
      const auto token = batch.tokens_BS.const_data_ptr<int64_t>()[drawn.sequence * 4];
      EXPECT_EQ(token, static_cast<int64_t>(drawn.set) * 1000 + drawn.sample);
      passes[{drawn.set, drawn.epoch}].push_back(drawn.sample);
    }
  }
  const auto whole = [](const std::vector<int64_t>& pass) {
    return std::set<int64_t>(pass.begin(), pass.end()).size();
  };
  EXPECT_EQ(whole(passes.at({0, 0})), 60u);
  EXPECT_EQ(passes.at({0, 0}).size(), 60u);
  for (int64_t epoch = 0; epoch < 5; ++epoch) EXPECT_EQ(whole(passes.at({1, epoch})), 7u) << epoch;
  EXPECT_NE(passes.at({1, 0}), passes.at({1, 1})) << "in a new order";
  EXPECT_EQ(source.epochs(20), (std::vector<double>{120.0 / 60, 40.0 / 7}));
}

TEST(DataBlend, SetsOfOneSizeHaveOrdersOfTheirOwn) {
  const BatchSource source(marked_sets({{1, 50}, {1, 50}}), {.micro_batch_size = 100}, 5);
  std::vector<std::vector<int64_t>> orders(2);
  for (const DrawnSample& drawn : source.draw(0, 0, 0)) orders[drawn.set].push_back(drawn.sample);
  EXPECT_NE(orders[0], orders[1]);
}

TEST(DataBlend, EverySplitSeesTheSameGlobalBatch) {
  const BlendedSets data = marked_sets({{0.6, 30}, {0.3, 40}, {0.1, 20}}, 0.2);
  const BatchSource one(data, {.micro_batch_size = 16}, 5);
  for (const auto& [micro, count, dp] : {std::tuple{2, 1, 8}, std::tuple{2, 2, 4}, std::tuple{4, 4, 1}}) {
    const BatchSource split(data, {.micro_batch_size = micro, .num_microbatches = count, .dp_size = dp}, 5);
    for (const int64_t step : {0, 7, 70}) {
      for (int d = 0; d < dp; ++d) {
        for (int64_t i = 0; i < count; ++i) {
          const TokenBatch part = split.train(step, i, d), checked = split.validation(step, i, d);
          const auto same = [&](const TokenBatch& whole, const TokenBatch& of) {
            return of.tokens_BS.equal(whole.tokens_BS.narrow(0, of.first_sample, of.tokens_BS.size(0))) &&
                   of.targets_BS.equal(whole.targets_BS.narrow(0, of.first_sample, of.tokens_BS.size(0)));
          };
          EXPECT_TRUE(same(one.train(step, 0, 0), part)) << step;
          EXPECT_TRUE(same(one.validation(step, 0, 0), checked)) << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ranklab
