#include "backends/cpu_sim/device_transfer.h"

#include <numeric>

#include "backends/cpu_sim/layout.h"
#include "core/comm/tree_reduce_tensors.h"
#include "core/sim/aten.h"

namespace ranklab::cpu_sim {
namespace {

using Calls = std::vector<Call>;

at::Tensor flat(const at::Tensor& tensor) { return tensor.detach().view({-1}); }

// `rows` rows of the tensor, starting at row `begin`.
at::Tensor rows_of(const at::Tensor& tensor, int64_t begin, int64_t rows, int64_t row) {
  return flat(tensor).narrow(0, begin * row, rows * row);
}

void all_reduce(const Calls& calls) {
  if (calls[0].input.numel() == 0) return;
  std::vector<at::Tensor> inputs;
  for (const Call& call : calls) inputs.push_back(flat(call.input));
  const at::Tensor sum = tree_reduce_tensors(inputs, calls[0].op, calls[0].reduce_in_fp32);
  for (const Call& call : calls) flat(call.output).copy_(sum);
}

void reduce_scatter(const Calls& calls) {
  const int64_t row = row_elements(calls[0].input);
  const std::vector<int64_t> begin = starts(calls[0].input_splits);
  for (size_t to = 0; to < calls.size(); ++to) {
    if (calls[to].output.numel() == 0) continue;
    std::vector<at::Tensor> inputs;
    for (const Call& call : calls) inputs.push_back(rows_of(call.input, begin[to], call.input_splits[to], row));
    flat(calls[to].output).copy_(tree_reduce_tensors(inputs, calls[0].op, calls[0].reduce_in_fp32));
  }
}

void concatenate(const at::Tensor& into, const std::vector<at::Tensor>& parts) {
  if (into.numel() == 0) return;
  at::Tensor out = flat(into);
  at::cat_out(out, parts);
}

void all_gather(const Calls& calls) {
  std::vector<at::Tensor> parts;
  for (const Call& call : calls) parts.push_back(flat(call.input));
  for (const Call& call : calls) concatenate(call.output, parts);
}

void all_to_all(const Calls& calls) {
  const int64_t row = row_elements(calls[0].input);
  for (size_t to = 0; to < calls.size(); ++to) {
    std::vector<at::Tensor> parts;
    for (const Call& from : calls) {
      const auto end = from.input_splits.begin() + static_cast<int64_t>(to);
      const int64_t begin = std::accumulate(from.input_splits.begin(), end, int64_t{0});
      parts.push_back(rows_of(from.input, begin, from.input_splits[to], row));
    }
    concatenate(calls[to].output, parts);
  }
}

void copy_from(const Calls& calls, size_t source) {
  const at::Tensor from = flat(calls[source].input);
  for (size_t to = 0; to < calls.size(); ++to) {
    if (to != source && from.numel() > 0) flat(calls[to].output).copy_(from);
  }
}

}  // namespace

void transfer_tensors(const Calls& calls) {
  const at::NoGradGuard no_grad;
  switch (calls[0].verb) {
    case Verb::kAllReduce:
      return all_reduce(calls);
    case Verb::kReduceScatter:
      return reduce_scatter(calls);
    case Verb::kAllGather:
      return all_gather(calls);
    case Verb::kAllToAll:
      return all_to_all(calls);
    case Verb::kBroadcast:
      return copy_from(calls, static_cast<size_t>(calls[0].peer));
    case Verb::kSend:
    case Verb::kRecv:
      return copy_from(calls, 0);
    case Verb::kBarrier:
    case Verb::kCount:
      return;
  }
}

}  // namespace ranklab::cpu_sim
