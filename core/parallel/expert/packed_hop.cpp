#include "core/parallel/expert/packed_hop.h"

#include <cmath>
#include <utility>

#include "core/parallel/expert/bin_counts.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// The (place, row) indices [M, 2] of the elements set in goes_NP; for meta tensors as many as `unknown` says.
at::Tensor pairs_of(const at::Tensor& goes_NP, const RowSpread& unknown) {
  if (!goes_NP.is_meta()) return goes_NP.nonzero();
  const int64_t rows = std::llround(static_cast<double>(goes_NP.size(1)) * unknown.copies());
  const CostScope cost("pack_rows", 0,
                       static_cast<double>(goes_NP.nbytes()) + 2.0 * sizeof(int64_t) * static_cast<double>(rows),
                       DType::kOther);
  return at::empty({2, rows}, goes_NP.options().dtype(at::kLong)).t();  // with the strides of nonzero()'s result
}

std::vector<int64_t> counts_of(const at::Tensor& place_M, int64_t places, const RowSpread& unknown) {
  const at::Tensor device_counts = bin_counts(place_M, places);
  if (place_M.is_meta()) {
    const std::vector<int64_t> parts = unknown.parts(place_M.numel());
    std::vector<int64_t> counts(static_cast<size_t>(places), 0);
    for (size_t i = 0; i < parts.size(); ++i) counts[static_cast<size_t>(unknown.places[i])] = parts[i];
    return counts;
  }
  const at::Tensor counts = device_counts.to(at::kCPU).contiguous();
  return {counts.const_data_ptr<int64_t>(), counts.const_data_ptr<int64_t>() + places};
}

}  // namespace

Onward onward(const at::Tensor& experts_NK, const at::Tensor& place_of_E, int64_t places, const RowSpread& unknown) {
  const at::NoGradGuard no_grad;
  Onward out;
  const at::Tensor place = place_of_E.index_select(0, experts_NK.reshape({-1}).clamp_min(0)).view_as(experts_NK);
  out.place_NK = place.masked_fill_(experts_NK.lt(0), places);
  const at::Tensor goes_NP = at::zeros({experts_NK.size(0), places + 1}, experts_NK.options().dtype(at::kBool));
  const at::Tensor pairs = pairs_of(goes_NP.scatter_(1, out.place_NK, true).t().narrow(0, 0, places), unknown);
  out.row_M = pairs.select(1, 1).contiguous();
  out.place_M = pairs.select(1, 0).contiguous();
  out.counts = counts_of(out.place_M, places, unknown);
  return out;
}

at::Tensor PackedHop::go(const at::Tensor& packed, const at::Tensor& experts_NK, const ExpertColumns& columns,
                         Onward plan, std::vector<int64_t> received, const TensorPrecision& wire, Carrier carrier) {
  carrier_ = std::move(carrier);
  plan_ = std::move(plan);
  received_ = std::move(received);
  came_ = packed.size(0);
  const at::Tensor rows = packed.index_select(0, plan_.row_M);
  const at::Tensor elsewhere = plan_.place_NK.index_select(0, plan_.row_M).ne(plan_.place_M.unsqueeze(1));
  const at::Tensor named = experts_NK.index_select(0, plan_.row_M).masked_fill_(elsewhere, -1);
  return carrier_(at::cat({rows.narrow(1, 0, rows.size(1) - columns.count()), columns.write(named)}, 1), plan_.counts,
                  received_, dispatch_exchange({wire, columns.hidden(packed)}));
}

at::Tensor PackedHop::come_back(const at::Tensor& sums) {
  if (!carrier_) return sums;
  const at::Tensor back = carrier_(sums, received_, plan_.counts, kCombineExchange);
  return at::zeros({came_, sums.size(1)}, sums.options()).index_add_(0, plan_.row_M, back);
}

}  // namespace ranklab
