// One training step of one rank as the sequence of kernels and collectives that the runtime issues, in its order:
// microbatch by microbatch, forward then backward, each gradient bucket when its last gradient is there, then norm,
// clip and update. A visitor counts bytes (traffic.h) or moves a clock (step_time.h). The dense axes (tp, sequence
// parallelism, dp) follow core/model, core/parallel and core/runtime call by call, and a test holds their calls and
// bytes equal to traced runs; pp, cp and expert axes are planned, see planned_axes.h. Kernel bytes are the roofline's:
// tensors read plus tensors written. Cost: about 60 visits a layer and microbatch. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/base/vocabulary.h"
#include "core/plan/step_shape.h"

namespace ranklab {

class StepVisitor {
 public:
  virtual ~StepVisitor() = default;
  // `kernels` launches that together do this much.
  virtual void compute(double flops, double bytes, int kernels) = 0;
  // A collective (or a message, kSend) of this rank begins; it is awaited by wait() with the returned ticket.
  virtual int post(Axis axis, Verb verb, int64_t logical_bytes) = 0;
  virtual void wait(int ticket) = 0;
};

void walk_step(const StepShape& shape, int stage, StepVisitor& visitor);

}  // namespace ranklab
