// One hop of packed tokens (packed_tokens.h) towards their experts, and the return of the experts' outputs: a row is
// sent once to every place (a rank or a node's gateway) that has work for it, however many of its experts are there,
// and the returned rows are summed at the row's origin. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "core/parallel/expert/exchange.h"
#include "core/parallel/expert/packed_tokens.h"
#include "core/parallel/expert/token_spread.h"

namespace ranklab {

// Sends rows to the members of a group, `sent` to each. `received`, the number of rows from each, is either given, or
// filled in by carriers that learn it only on arrival. Differentiable.
using Carrier = std::function<at::Tensor(const at::Tensor& rows, const std::vector<int64_t>& sent,
                                         std::vector<int64_t>& received, ExchangePurpose purpose)>;

// A send plan for rows [N] with K experts each: every row to the places of its experts, sorted by place.
struct Onward {
  at::Tensor place_NK;          // the place of each expert; a value equal to the number of places: not sent
  at::Tensor row_M, place_M;    // the row and the place of each copy
  std::vector<int64_t> counts;  // rows per place
};
// place_of_E int64 [E]: the place of each expert; a value equal to `places`, or expert -1: not sent. `unknown`: the
// spread assumed for meta tensors, whose routing is unknown.
Onward onward(const at::Tensor& experts_NK, const at::Tensor& place_of_E, int64_t places, const RowSpread& unknown);

class PackedHop {
 public:
  // Sends packed rows [N, .] with experts [N, K] according to `plan` -> the rows that arrive. In each copy, experts at
  // other places are set to -1. `received`: the number of rows from each place, or empty if the carrier finds out.
  at::Tensor go(const at::Tensor& packed, const at::Tensor& experts_NK, const ExpertColumns& columns, Onward plan,
                std::vector<int64_t> received, const TensorPrecision& wire, Carrier carrier);
  // [arrived, H] -> [N, H]: the sum over each row's copies. Returns `sums` itself if go() was not called.
  at::Tensor come_back(const at::Tensor& sums);

 private:
  Carrier carrier_;
  Onward plan_;
  std::vector<int64_t> received_;
  int64_t came_ = 0;
};

}  // namespace ranklab
