// One training step of one rank as the sequence of kernels and collectives that the runtime issues, in its order: the
// actions of its pipeline schedule (with pp 1 forward and backward, microbatch by microbatch), each gradient bucket
// when its last gradient is there, then the exchange of shared gradients, norm, clip and update. A visitor counts bytes
// (traffic.h) or moves a clock (step_time.h). It follows core/model, core/parallel and core/runtime call by call, for
// experts that get equally many tokens, and a test holds its calls and bytes equal to traced runs; cp is planned, see
// planned_axes.h. Kernel bytes are the roofline's: tensors read plus tensors written. Cost: about 60 visits a layer and
// microbatch. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/base/vocabulary.h"
#include "core/pipeline/schedule.h"
#include "core/plan/step_shape.h"

namespace ranklab {

// An all_to_all as one rank takes part in it, when all of them do alike.
struct PlannedExchange {
  int64_t logical = 0;              // bytes given to it
  int64_t in_node = 0, across = 0;  // of them those for other ranks, on the node and on others
  int64_t puts = 0;                 // so many messages that leave one after another, instead of one collective
};
// Of equally many bytes for each member of the ep group.
PlannedExchange even_exchange(const StepShape& shape, int64_t logical_bytes);

class StepVisitor {
 public:
  virtual ~StepVisitor() = default;
  // `kernels` launches that together do this much.
  virtual void compute(double flops, double bytes, int kernels) = 0;
  // One product of operands in 8 bits or fewer.
  virtual void compute_fp8(double flops, double bytes) = 0;
  // A collective (or a message, kSend) of this rank begins; it is awaited by wait() with the returned ticket.
  virtual int post(Axis axis, Verb verb, int64_t logical_bytes) = 0;
  virtual int exchange(Axis axis, const PlannedExchange& bytes) = 0;
  virtual void wait(int ticket) = 0;
  // A message to another rank of the pipeline: nobody waits for an action's, all wait for a shared gradient's.
  virtual void send(int pp_rank, int64_t bytes, bool awaited) = 0;
  virtual void begin_action(size_t /*index*/) {}  // of the rank's list
  // What follows has been computed before: no part of the model's FLOPs.
  virtual void set_recomputing(bool /*again*/) {}
};

// The schedule of a mesh that names none: 1F1B, a stage a rank.
Schedule plain_schedule(const StepShape& shape);

void walk_step(const StepShape& shape, const Schedule& schedule, int pp_rank, StepVisitor& visitor);

}  // namespace ranklab
