// Scores and entropies of attention in a forward of the probe, for this rank's heads and a sample of queries. Cost: at
// most kQueries rows of scores per head. Thread rule: its rank's thread.
#pragma once
#include <map>
#include <string>

#include "core/nn/module_hooks.h"

namespace ranklab {

class AttentionProbe final : public ModuleHook {
 public:
  struct Seen {
    double largest = 0;  // largest score before the softmax
    // sums over queries; share: entropy as a fraction of log(number of keys that the query attends to)
    double entropy = 0, share = 0, queries = 0;
    double sink = 0;  // probability of the sinks, summed over queries
  };
  void clear() { seen_.clear(); }
  // Indexed by layer; only layers of this rank.
  const std::map<int64_t, Seen>& seen() const { return seen_; }

  void before_forward(const std::string&, ModulePass, const at::Tensor&) override {}
  void after_forward(const std::string&, ModulePass, const at::Tensor&) override {}
  void before_backward(const std::string&, const at::Tensor&) override {}
  void after_backward(const std::string&, const at::Tensor&) override {}
  bool wants_heads() const override { return true; }
  void attention_heads(const std::string& path, const at::Tensor& q_BHSD, const at::Tensor& k_BGSD,
                       const ScoreRule& rule) override;

 private:
  std::map<int64_t, Seen> seen_;
};

}  // namespace ranklab
