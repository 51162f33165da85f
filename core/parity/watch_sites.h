// Chooses what a watched step samples: one tensor of each module, parameter and buffer on all ranks, another kind of
// tensor each time. Checks by hashes that all ranks exchange whether ranks that have the same elements have the same
// bits (the rules of audit(), compare.h). Thread rule: its rank's thread.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/communicator.h"
#include "core/model/causal_lm.h"
#include "core/parity/explain.h"
#include "core/parity/parity_record.h"
#include "core/runtime/sentinels/rank_table.h"

namespace ranklab {

// A sampled tensor whose copies do not have the same bits.
struct CopiesApart {
  TensorKey key;
  std::vector<int> wrong_ranks = {};  // the ranks that differ from the first rank with the same elements
  std::vector<Explanation> why = {};
  std::string text() const;  // "final_norm.weight grad (backward): rank 1 has ...; copies differ over tp"
};

class WatchSites {
 public:
  // Collective.
  WatchSites(CausalLm& model, Communicator& world, c10::Device device, RankTable& table);

  // Chooses the kinds of tensors for the `count`th watched step.
  void choose(int64_t step, int64_t count);
  bool takes(const TensorKey& key) const;
  // Writes the hashes of this rank's sampled tensors into the table.
  void fill(const TensorPieces& mine, RankTable& table) const;
  // The tensors whose copies differ, in causal order.
  std::vector<CopiesApart> apart(const RankTable& table, const ParityMesh& mesh) const;

 private:
  enum class Of : uint8_t { kModule, kParameter, kBuffer, kNorm };
  struct Site {
    Of of;
    std::string name;
    int module = 0;         // position, in the order of the forward, of the module that it is or belongs to
    std::string kind = {};  // the kind of tensor that is sampled now
  };
  static Of of(const TensorKey& key);
  const Site* site_of(const TensorKey& key) const;
  TensorKey key_of(const Site& site) const;
  std::vector<size_t> causal_places() const;

  std::vector<Site> sites_;
  std::map<std::pair<Of, std::string>, size_t> place_;
  size_t slots_ = 0;
  int64_t step_ = 0;
};

}  // namespace ranklab
