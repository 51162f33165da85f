// One hop of packed tokens (packed_tokens.h) towards their experts, and the way back of what the experts made of them:
// a row goes to every place that has work for it, once, however many of its experts are there, and what comes back is
// added up where it left. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "core/parallel/expert/exchange.h"
#include "core/parallel/expert/token_spread.h"

namespace ranklab {

// Rows for each member of a group, sent; `received` of each is known to the carrier or, where a carrier learns it from
// what arrives, filled in by it. Differentiable.
using Carrier = std::function<at::Tensor(const at::Tensor& rows, const std::vector<int64_t>& sent,
                                         std::vector<int64_t>& received, ExchangePurpose purpose)>;

// Rows [N, K experts] by the place of an expert: those that have work there, place by place.
struct Onward {
  at::Tensor place_NK;          // of each expert, or the number of places: nowhere
  at::Tensor row_M, place_M;    // which row; where it goes
  std::vector<int64_t> counts;  // of each place
};
// place_of_E int64 [E]: of each expert, or `places`: nowhere. Experts -1 have none.
// `unknown`: of rows of a shape alone.
Onward onward(const at::Tensor& experts_NK, const at::Tensor& place_of_E, int64_t places, const EvenSpread& unknown);

class PackedHop {
 public:
  // packed [N, H + 2 K], whose experts [N, K] go `plan`'s way -> what arrives. Only the experts of the place where a
  // row goes stay named. `received`: rows from each place, or empty when the carrier finds out.
  at::Tensor go(const at::Tensor& packed, const at::Tensor& experts_NK, Onward plan, std::vector<int64_t> received,
                const TensorPrecision& wire, Carrier carrier);
  // [arrived, H] -> [N, H]: added up for each row that left. The tensor itself when go() was not called.
  at::Tensor come_back(const at::Tensor& sums);

 private:
  Carrier carrier_;
  Onward plan_;
  std::vector<int64_t> received_;
  int64_t came_ = 0;
};

}  // namespace ranklab
