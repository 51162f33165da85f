// The cases of the suite; each runs worlds of its own. Inputs are functions of (rank, element), so every rank can
// compute what every other rank sent.
#pragma once

#include "core/base/vocabulary.h"
#include "core/sim/aten.h"
#include "tests/conformance/conformance.h"

namespace ranklab::conformance {

// Values with distinct roundings, different for each rank and element, on the CPU.
at::Tensor values(int rank, int64_t count, at::ScalarType dtype, int64_t offset = 0);

// A rank in a case: the communicator of all ranks, and the device of its world, on which its tensors must be.
struct Member {
  Communicator& comm;
  c10::Device device;

  int rank() const { return comm.rank(); }
  int size() const { return comm.size(); }
  at::Tensor here(const at::Tensor& tensor) const { return tensor.to(device); }
  at::Tensor mine(int64_t count, at::ScalarType dtype, int64_t offset = 0) const {
    return here(values(comm.rank(), count, dtype, offset));
  }
};

Group whole_world(const Endpoint& endpoint);
// Runs `body` on every rank of a world of that size.
void run_world(const Backend& backend, int size, const std::function<void(const Member&)>& body);

// Runs `body` at every (group size, count, dtype) of the backend.
struct Setting {
  int64_t count;
  at::ScalarType dtype;
};
using CaseBody = std::function<void(const Member&, const Setting&, const Backend&)>;
void for_each_setting(const Backend& backend, const CaseBody& body);
// What a reduction of every rank's values() is, by the reference tree.
at::Tensor reduced(const std::vector<at::Tensor>& inputs, ReduceOp op);
// Bit for bit, or nearly for reductions of a backend without the canonical order.
void expect_same(const at::Tensor& got, const at::Tensor& want, const Backend& backend, bool is_reduction,
                 const std::string& what);

// cases_moves.cpp
void all_gather_case(const Backend&);
void all_to_all_case(const Backend&);
void broadcast_case(const Backend&);
void send_recv_case(const Backend&);
void lanes_case(const Backend&);
void barrier_case(const Backend&);
// cases_reduce.cpp
void all_reduce_case(const Backend&);
void reduce_scatter_case(const Backend&);
void composition_case(const Backend&);
void large_all_reduce_case(const Backend&);
// cases_shape.cpp
void non_contiguous_case(const Backend&);
void uneven_and_empty_rows_case(const Backend&);
void async_case(const Backend&);
void several_axes_case(const Backend&);
void random_delays_case(const Backend&);

}  // namespace ranklab::conformance
