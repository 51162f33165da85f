// Virtual time for compute: a thread-local at::RecordFunction callback sees every ATen op, forward and backward, and
// advances the rank's clock by max(flops / peak(dtype), bytes / bandwidth) + launch overhead (the roofline model,
// Williams et al. 2009). So any model gets a timeline with no per-layer formula; the same observer counts FLOPs for MFU
// and ops. View-only ops (view, t, expand, detach ...) cost nothing. Cost: about 0.5 us of real time per op; nearly
// none inside scopes. Thread rule: create and destroy on the rank's thread.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/dtype.h"
#include "core/sim/hardware_profile.h"
#include "core/sim/kernel_run.h"
#include "core/sim/virtual_clock.h"

namespace ranklab {

class OpObserver {
 public:
  OpObserver(const HardwareProfile& profile, VirtualClock& clock);
  ~OpObserver();
  OpObserver(const OpObserver&) = delete;
  OpObserver& operator=(const OpObserver&) = delete;

  double flops() const;  // FLOPs of matrix multiplications, convolutions and attention since creation
  int64_t ops() const;
  const KernelTimes& kernel_times() const;  // since creation
  // Adds counts of what ran elsewhere in this rank's place; the clock is not advanced.
  void add(double flops, const KernelTimes& kernel_times);
  void set_paused(bool paused);  // while paused, ops cost nothing (bookkeeping, tests, checkpointing)
  // Call when a pass begins, where the host has waited for its inputs and has launched nothing ahead. If the software's
  // host takes time to launch a kernel (software.h), the pass takes as long as the slower of host and device.
  void begin_pass();
  // Called after each op or CostScope that was charged, with the clock at its end. Empty: no call.
  void set_after_op(std::function<void()> after_op);
  // The same, but with a description of the kernel. Names and shapes are only put together if this is set.
  void set_on_kernel(std::function<void(const KernelRun&)> on_kernel);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

// Whether an operator that this thread ran now would be charged.
bool charges_ops();
// Whether this thread has an observer, even if what runs now may cost nothing.
bool has_virtual_clock();

// While this object is alive on a rank's thread, the ops inside cost nothing; at the end, the stated cost is charged
// once. For work that is emulated or unfused here but would be one kernel on a GPU (FP8 GEMM, fused norm, gradient
// bucket copies). Scopes nest: the outermost one wins.
class CostScope {
 public:
  CostScope(KernelName name, double flops, double bytes, DType dtype);
  ~CostScope();
  CostScope(const CostScope&) = delete;
  CostScope& operator=(const CostScope&) = delete;

 private:
  KernelName name_;
  double flops_, bytes_;
  DType dtype_;
};

// Pauses the observer of this thread, if there is one.
class NoCostScope {
 public:
  NoCostScope();
  ~NoCostScope();
  NoCostScope(const NoCostScope&) = delete;
  NoCostScope& operator=(const NoCostScope&) = delete;

 private:
  bool previous_ = false;
};

}  // namespace ranklab
