#include "core/sim/op_observer.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/sim/kernel_time.h"
#include "core/sim/op_class.h"
#include "core/sim/op_cost.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {
namespace {

// "gemm mxnxk" for "aten::mm" of [m, k] and [k, n]; in batched products the batches count as rows.
std::string kernel_name(const at::RecordFunction& fn, const OpClass& op) {
  std::string_view name = fn.name();
  if (const size_t scope = name.rfind("::"); scope != std::string_view::npos) name.remove_prefix(scope + 2);
  const auto inputs = fn.inputs();
  if (op.kind != OpKind::kMatmul || op.first < 0 || op.second < 0) return std::string(name);
  const c10::IValue &left = inputs[static_cast<size_t>(op.first)], &right = inputs[static_cast<size_t>(op.second)];
  if (!left.isTensor() || !right.isTensor()) return std::string(name);
  const at::Tensor &a = left.toTensor(), &b = right.toTensor();
  if (a.dim() < 2 || b.dim() < 2) return std::string(name);
  const auto inner = static_cast<double>(a.size(-1));
  return KernelName("gemm", static_cast<double>(a.numel()) / std::max(inner, 1.0), static_cast<double>(b.size(-1)),
                    inner)
      .text();
}

constexpr OpClass kNoOperator{.kind = OpKind::kComposite};

}  // namespace

std::string KernelName::text() const {
  const bool product = shape.kind == KernelShape::Kind::kProduct || shape.kind == KernelShape::Kind::kLowProduct;
  if (!product || shape.batches != 1) return what;
  return strprintf("%s %.0fx%.0fx%.0f", what, shape.m, shape.n, shape.k);
}

struct OpObserver::State {
  struct Known {
    std::string name;
    OpClass op;
  };
  struct Seen {
    const char* address = nullptr;
    const Known* known = nullptr;
  };
  struct Frame {
    const OpClass* op = nullptr;  // null: inside a closed op, a CostScope, or paused
    OpCost cost;
    std::string name;  // set only if there is a listener; the arguments are gone when the op ends
    bool closed = false;
    bool child_charged = false;
    bool free = false;  // a copy that the simulated machine would not make
  };

  State(const HardwareProfile& hardware, VirtualClock& rank_clock)
      : profile(hardware),
        clock(rank_clock),
        launch_ns(std::llround(hardware.software.terms.launch_us * 1e3)),
        launch_blocking(hardware.software.terms.launch_blocking) {
    frames.reserve(32);
  }

  const OpClass& lookup(const at::RecordFunction& fn) {
    const char* const address = fn.name();
    // a node of autograd, whose name is at a new address each time
    if (std::strchr(address, ':') == nullptr) return kNoOperator;
    Seen& seen = by_address[(reinterpret_cast<uintptr_t>(address) >> 3) % by_address.size()];
    // Comparing the text detects addresses that were reused for another operator.
    if (seen.address == address && std::strcmp(seen.known->name.c_str(), address) == 0) return seen.known->op;
    const std::string overload = fn.overload_name();
    auto& one = known[std::string(address) + '.' + overload];
    if (!one) one = std::make_unique<Known>(Known{address, classify(address, overload)});
    seen = {address, one.get()};
    return one->op;
  }

  // The GPU cannot begin a kernel before its host has launched it, nor finish before the host has launched the last
  // kernel.
  void wait_for_launches(int launches) {
    kernel_times.launches += launches;
    if (launch_ns <= 0) return;
    if (launch_blocking) host_ns = clock.now_ns();
    host_ns += launches * launch_ns;
    const int64_t wait_ns = host_ns - clock.now_ns();
    if (wait_ns <= 0) return;
    clock.advance(wait_ns);
    kernel_times.launch_ns += wait_ns;
  }

  template <typename Name>
  void charge(double model_flops, const KernelWork& work, const Name& name) {
    wait_for_launches(1);
    const int64_t begin_ns = clock.now_ns();
    const int64_t spent_ns = kernel_ns(profile, work);
    clock.advance(spent_ns);
    const int64_t end_ns = clock.now_ns();
    kernel_times.ns.at(static_cast<size_t>(work.shape.kind)) += spent_ns;
    if (work.shape.launches > 1) wait_for_launches(work.shape.launches - 1);
    if (on_kernel)
      on_kernel({.name = name(),
                 .flops = work.flops,
                 .bytes = work.bytes,
                 .dtype = work.dtype,
                 .bound = kernel_bound(profile, work),
                 .begin_ns = begin_ns,
                 .end_ns = end_ns});
    if (!recomputing()) flops += model_flops;
    ++ops;
    if (after_op) after_op();
  }

  // A callback for an operator boxes its arguments, which costs about as much as a small operator. Most operators run
  // where nothing is charged; so after a few of them callbacks are turned off until the scope ends, unless somebody
  // else listens, too.
  void skip() {
    if (++skipped != kTold) return;
    if (at::get_record_function_tls_().sorted_tls_callbacks_.size() > 1 || at::hasGlobalCallbacks()) return;
    at::enableRecordFunction(false);
  }
  // LibTorch keeps this switch in a state that each of the pieces of work interleaved on this thread has separately
  // (core/parallel/interleave.h), so no copy of it is kept here.
  void scope_ended() {
    if (paused || scope_depth > 0) return;
    skipped = 0;
    if (!at::isRecordFunctionEnabled()) at::enableRecordFunction(true);
  }

  void begin(const at::RecordFunction& fn) {
    Frame& frame = frames.emplace_back();
    if (paused || scope_depth > 0) return skip();
    if (closed_depth > 0) return;
    frame.op = &lookup(fn);
    frame.closed = frame.op->closed;
    if (frame.op->copies) begin_copy(frame, fn.inputs());
    if (frame.op->kind != OpKind::kFree && frame.op->kind != OpKind::kComposite) {
      frame.cost = cost_at_start(*frame.op, fn.inputs());
      if (on_kernel) frame.name = kernel_name(fn, *frame.op);
    }
    if (frame.closed) ++closed_depth;
  }

  static void begin_copy(Frame& frame, c10::ArrayRef<const c10::IValue> inputs) {
    if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor()) return;
    const at::Tensor &to = inputs[0].toTensor(), &from = inputs[1].toTensor();
    if (!to.defined() || !from.defined()) return;
    const CopyCharge charge =
        copy_charge({to.device().type(), to.scalar_type()}, {from.device().type(), from.scalar_type()});
    frame.free = charge == CopyCharge::kFree;
    // the operators that a copy to another device runs on the way are not charged
    if (charge != CopyCharge::kAsOperators) frame.closed = true;
  }

  void end(const at::RecordFunction& fn) {
    if (frames.empty()) return;  // the op that was running when the observer was created
    Frame frame = frames.back();
    frames.pop_back();
    if (frame.op == nullptr) return;
    const OpClass& op = *frame.op;
    if (frame.closed) --closed_depth;
    bool charged = frame.child_charged || frame.free;  // an operator around a free copy is also free
    if (!charged && op.kind != OpKind::kFree && op.kind != OpKind::kComposite) {
      add_outputs(op, c10::ArrayRef<const c10::IValue>(fn.outputs().data(), fn.outputs().size()), frame.cost);
      const OpCost& c = frame.cost;
      charge(c.flops - c.recomputed_flops, {c.flops, c.bytes, c.dtype, c.shape}, [&] { return frame.name; });
      charged = true;
    }
    if (charged && !frames.empty()) frames.back().child_charged = true;
  }

  const HardwareProfile& profile;
  VirtualClock& clock;
  const int64_t launch_ns;
  const bool launch_blocking;
  int64_t host_ns = 0;  // when the host has launched the latest kernel
  double flops = 0;
  int64_t ops = 0;
  KernelTimes kernel_times{};
  bool paused = false;
  static constexpr int kTold = 2;
  int skipped = 0;  // number of callbacks inside the currently open scopes
  int scope_depth = 0;
  int closed_depth = 0;
  std::vector<Frame> frames;
  std::unordered_map<std::string, std::unique_ptr<Known>> known;  // by name and overload
  std::array<Seen, 1024>
      by_address{};  // the last operator at each slot; saves building the key above for each operator
  std::function<void()> after_op;
  std::function<void(const KernelRun&)> on_kernel;
  at::CallbackHandle handle = 0;
};

namespace {

thread_local OpObserver::State* t_state = nullptr;
thread_local int t_recomputations = 0;  // number of RecomputeScopes, also in threads without an observer

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& fn) {
  if (t_state != nullptr) t_state->begin(fn);
  return nullptr;
}

void on_end(const at::RecordFunction& fn, at::ObserverContext* /*context*/) {
  if (t_state != nullptr) t_state->end(fn);
}

}  // namespace

OpObserver::OpObserver(const HardwareProfile& profile, VirtualClock& clock)
    : state_(std::make_unique<State>(profile, clock)) {
  RANKLAB_CHECK(t_state == nullptr, ErrorKind::kInternal, .where = "sim op observer",
                .what = "this thread already has an observer", .got = "a second one", .want = "one per rank thread");
  t_state = state_.get();
  state_->handle = at::addThreadLocalCallback(at::RecordFunctionCallback(&on_start, &on_end)
                                                  .needsInputs(true)
                                                  .needsOutputs(true)
                                                  .scopes({at::RecordScope::FUNCTION}));
}

OpObserver::~OpObserver() {
  at::enableRecordFunction(true);
  at::removeCallback(state_->handle);
  t_state = nullptr;
}

double OpObserver::flops() const { return state_->flops; }
int64_t OpObserver::ops() const { return state_->ops; }
const KernelTimes& OpObserver::kernel_times() const { return state_->kernel_times; }
void OpObserver::add(double flops, const KernelTimes& kernel_times) {
  state_->flops += flops;
  state_->kernel_times.add(kernel_times);
}
void OpObserver::set_paused(bool paused) {
  state_->paused = paused;
  state_->scope_ended();
}
void OpObserver::begin_pass() { state_->host_ns = state_->clock.now_ns(); }
void OpObserver::set_on_kernel(std::function<void(const KernelRun&)> on_kernel) {
  state_->on_kernel = std::move(on_kernel);
}
void OpObserver::set_after_op(std::function<void()> after_op) { state_->after_op = std::move(after_op); }

bool has_virtual_clock() { return t_state != nullptr; }
bool charges_ops() { return t_state != nullptr && !t_state->paused && t_state->scope_depth == 0; }

CostScope::CostScope(KernelName name, double flops, double bytes, DType dtype)
    : name_(name), flops_(flops), bytes_(bytes), dtype_(dtype) {
  if (t_state != nullptr) ++t_state->scope_depth;
}

CostScope::~CostScope() {
  if (t_state == nullptr) return;
  --t_state->scope_depth;
  t_state->scope_ended();
  if (t_state->scope_depth > 0 || t_state->paused) return;
  t_state->charge(flops_, {flops_, bytes_, dtype_, name_.shape}, [this] { return name_.text(); });
}

NoCostScope::NoCostScope() {
  if (t_state == nullptr) return;
  previous_ = t_state->paused;
  t_state->paused = true;
}

NoCostScope::~NoCostScope() {
  if (t_state == nullptr) return;
  t_state->paused = previous_;
  t_state->scope_ended();
}

RecomputeScope::RecomputeScope() { ++t_recomputations; }
RecomputeScope::~RecomputeScope() { --t_recomputations; }
bool recomputing() { return t_recomputations > 0; }
int exchange_recompute_scopes(int open) { return std::exchange(t_recomputations, open); }

}  // namespace ranklab
