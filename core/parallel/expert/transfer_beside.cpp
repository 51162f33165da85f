#include "core/parallel/expert/transfer_beside.h"

#include <utility>

#include "core/comm/purpose.h"
#include "core/nn/custom_function.h"
#include "core/parallel/interleave.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

struct Transfer : torch::CustomClassHolder {
  Transfer(TransferCalls its_calls, ExchangePurpose its_purpose, std::function<void()> in_backward)
      : calls(std::move(its_calls)), purpose(its_purpose), work_in_backward(std::move(in_backward)) {}

  void post(const at::Tensor& rows) {
    width = rows.size(1);
    type = rows.scalar_type();
    const PurposeScope scope(purpose.forward);
    in_flight = calls.there(purpose.wire.packs() ? to_wire(rows, purpose.wire) : rows);
  }
  at::Tensor arrived() {
    const at::Tensor rows = wait();
    return purpose.wire.packs() ? from_wire(rows, purpose.wire, width, type) : rows;
  }
  void post_back(const at::Tensor& grad) {
    const PurposeScope scope(purpose.backward);
    in_flight = calls.back(grad);
  }
  at::Tensor gradient() {
    if (work_in_backward) work_in_backward();
    return wait();
  }
  at::Tensor wait() { return await_in_turns(std::exchange(in_flight, nullptr)); }

  TransferCalls calls;
  ExchangePurpose purpose;
  std::function<void()> work_in_backward;
  WorkPtr in_flight = nullptr;
  int64_t width = 0;
  at::ScalarType type = at::kFloat;
};
using TransferPtr = c10::intrusive_ptr<Transfer>;

void keep(AutogradContext* ctx, const TransferPtr& transfer) {
  ctx->saved_data["transfer"] = c10::IValue::make_capsule(transfer);
}
Transfer& kept(AutogradContext* ctx) { return static_cast<Transfer&>(*ctx->saved_data["transfer"].toCapsule()); }

// Between the two nodes is an empty tensor, since the rows are not there yet, and in backward no gradient at all.
struct Posted : CustomFunction<Posted> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, const TransferPtr& transfer) {
    keep(ctx, transfer);
    ctx->set_materialize_grads(false);
    transfer->post(rows);
    return at::empty({0}, rows.options());
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& /*nothing*/) {
    return {kept(ctx).gradient(), {}};
  }
};

struct Arrived : CustomFunction<Arrived> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& /*nothing*/, const TransferPtr& transfer) {
    keep(ctx, transfer);
    return transfer->arrived();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    kept(ctx).post_back(grads[0]);
    return {{}, {}};
  }
};

}  // namespace

at::Tensor transfer_beside(const at::Tensor& rows, const TransferCalls& calls, const ExchangePurpose& purpose,
                           WorkBeside& beside) {
  const auto transfer = c10::make_intrusive<Transfer>(calls, purpose, beside.take_backward());
  const at::Tensor posted = Posted::apply(rows, transfer);
  if (!is_interleaved()) beside.do_forward();
  return Arrived::apply(posted, transfer);
}

}  // namespace ranklab
