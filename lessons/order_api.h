// What an exercise about pipelines sees: the list of what one rank does, first to last. A microbatch is the number of a
// piece of the batch, from 0. It includes nothing, so an exercise compiles in no time. Thread rule: one thread.
#pragma once

namespace ranklab::lesson {

class Order {
 public:
  virtual ~Order() = default;

  virtual void forward(int microbatch) = 0;      // F
  virtual void backward(int microbatch) = 0;     // BW: input_grad and weight_grad in one go
  virtual void input_grad(int microbatch) = 0;   // B: what the rank before waits for
  virtual void weight_grad(int microbatch) = 0;  // W: nobody waits for it; it ends the microbatch on this rank
};

}  // namespace ranklab::lesson
