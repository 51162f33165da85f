// The interface for pipeline exercises: the ordered list of what one rank does. A microbatch is given by its index in
// the batch, from 0. It includes nothing, so an exercise compiles quickly. Thread rule: one thread.
#pragma once

namespace ranklab::lesson {

class Order {
 public:
  virtual ~Order() = default;

  virtual void forward(int microbatch) = 0;      // F
  virtual void backward(int microbatch) = 0;     // BW: input_grad and weight_grad together
  virtual void input_grad(int microbatch) = 0;   // B: the previous rank waits for it
  virtual void weight_grad(int microbatch) = 0;  // W: nobody waits for it; it ends the microbatch on this rank
};

}  // namespace ranklab::lesson
