// What a watched step samples: one tensor of each module, parameter and buffer of all ranks, another kind of it each
// time; and whether ranks that have the same elements of it have the same bits (the rules of audit(), compare.h), by
// hashes that all ranks exchange. Thread rule: its rank's thread.
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

// Copies of a sampled tensor that have not the same bits.
struct CopiesApart {
  TensorKey key;
  std::vector<int> wrong_ranks = {};  // that differ from the first rank with the same elements
  std::vector<Explanation> why = {};
  std::string text() const;  // "final_norm.weight grad (backward): rank 1 has ...; copies differ over tp"
};

class WatchSites {
 public:
  // Collective.
  WatchSites(CausalLm& model, Communicator& world, c10::Device device, RankTable& table);

  // For the `count`th watched step.
  void choose(int64_t step, int64_t count);
  bool takes(const TensorKey& key) const;
  // The hashes of what this rank has of them.
  void fill(const TensorPieces& mine, RankTable& table) const;
  // In causal order.
  std::vector<CopiesApart> apart(const RankTable& table, const ParityMesh& mesh) const;

 private:
  enum class Of : uint8_t { kModule, kParameter, kBuffer, kNorm };
  struct Site {
    Of of;
    std::string name;
    int module = 0;         // the place of the module that it is or belongs to, in the order of the forward
    std::string kind = {};  // sampled now
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
