#include "core/parallel/expert/packed_hop.h"

#include <ATen/ATen.h>

#include <utility>

#include "core/parallel/expert/packed_tokens.h"

namespace ranklab {
namespace {

at::Tensor place_of(const at::Tensor& experts_NK, const at::Tensor& place_of_E, int64_t places) {
  const at::Tensor place = place_of_E.index_select(0, experts_NK.reshape({-1}).clamp_min(0)).view_as(experts_NK);
  return place.masked_fill(experts_NK.lt(0), places);
}

}  // namespace

Onward onward(const at::Tensor& experts_NK, const at::Tensor& place_of_E, int64_t places) {
  const at::NoGradGuard no_grad;
  at::Tensor goes_NP = at::zeros({experts_NK.size(0), places + 1}, experts_NK.options().dtype(at::kBool));
  goes_NP.scatter_(1, place_of(experts_NK, place_of_E, places), true);
  const at::Tensor pairs = goes_NP.t().narrow(0, 0, places).nonzero();
  Onward out{pairs.select(1, 1).contiguous(), pairs.select(1, 0).contiguous(), {}};
  const at::Tensor counts = at::bincount(out.place_M, {}, places).to(at::kCPU).contiguous();
  out.counts.assign(counts.const_data_ptr<int64_t>(), counts.const_data_ptr<int64_t>() + places);
  return out;
}

at::Tensor PackedHop::go(const at::Tensor& packed, int64_t slots, const at::Tensor& place_of_E, int64_t places,
                         std::vector<int64_t> received, Carrier carrier) {
  carrier_ = std::move(carrier);
  received_ = std::move(received);
  came_ = packed.size(0);
  plan_ = onward(unpack_tokens(packed, slots).experts_NK, place_of_E, places);
  const at::Tensor rows = packed.index_select(0, plan_.row_M);
  const at::Tensor experts = unpack_tokens(rows, slots).experts_NK;
  const at::Tensor elsewhere = place_of(experts, place_of_E, places).ne(plan_.place_M.unsqueeze(1));
  const at::Tensor named = experts.masked_fill(elsewhere, -1).to(packed.scalar_type());
  return carrier_(at::cat({rows.narrow(1, 0, rows.size(1) - slots), named}, 1), plan_.counts, received_,
                  kDispatchExchange);
}

at::Tensor PackedHop::come_back(const at::Tensor& sums) {
  if (!carrier_) return sums;
  const at::Tensor back = carrier_(sums, received_, plan_.counts, kCombineExchange);
  return at::zeros({came_, sums.size(1)}, sums.options()).index_add(0, plan_.row_M, back);
}

}  // namespace ranklab
