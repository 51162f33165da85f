#include "core/comm/call_check.h"

#include <string_view>

#include "core/base/text.h"
#include "core/sim/op_cost.h"

namespace ranklab {
namespace {

std::string shape_text(const at::Tensor& tensor) {
  return "[" + join(std::span<const int64_t>(tensor.sizes().data(), tensor.sizes().size()), ", ") + "]";
}

std::string rows_text(const std::vector<int64_t>& rows) {
  return "[" + join(std::span<const int64_t>(rows), " ") + "]";
}

bool same_row_shape(const at::Tensor& a, const at::Tensor& b) { return a.sizes().slice(1) == b.sizes().slice(1); }

bool same_rows(const Call& a, int a_rank, const Call& b, int b_rank) {
  switch (a.verb) {
    case Verb::kAllGather:
      return a.output_splits == b.output_splits;
    case Verb::kReduceScatter:
      return a.input_splits == b.input_splits;
    case Verb::kAllToAll:
      return a.input_splits[static_cast<size_t>(b_rank)] == b.output_splits[static_cast<size_t>(a_rank)] &&
             b.input_splits[static_cast<size_t>(a_rank)] == a.output_splits[static_cast<size_t>(b_rank)];
    default:
      return true;
  }
}

bool is_reduction(Verb verb) { return verb == Verb::kAllReduce || verb == Verb::kReduceScatter; }

}  // namespace

const at::Tensor& payload(const Call& call) { return call.input.defined() ? call.input : call.output; }

std::string describe(const CallSite& site) {
  const std::string_view path = site.file;
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1)) + ":" + std::to_string(site.line);
}

std::string describe(const Call& call) {
  std::string out(name(call.verb));
  switch (call.verb) {
    case Verb::kAllReduce:
    case Verb::kReduceScatter:
      out += "(" + std::string(name(call.op)) + ")";
      break;
    case Verb::kBroadcast:
      out += "(root " + std::to_string(call.peer) + ")";
      break;
    case Verb::kSend:
      out += "(to " + std::to_string(call.peer) + ", tag " + std::to_string(call.tag) + ")";
      break;
    case Verb::kRecv:
      out += "(from " + std::to_string(call.peer) + ", tag " + std::to_string(call.tag) + ")";
      break;
    default:
      break;
  }
  if (const at::Tensor& tensor = payload(call); tensor.defined())
    out += " " + std::string(name(dtype_of(tensor.scalar_type()))) + " " + shape_text(tensor);
  if (call.verb == Verb::kAllToAll)
    out += " sending rows " + rows_text(call.input_splits) + ", receiving " + rows_text(call.output_splits);
  if (call.verb == Verb::kReduceScatter) out += " keeping rows " + rows_text(call.input_splits);
  if (call.verb == Verb::kAllGather) out += " gathering rows " + rows_text(call.output_splits);
  return out + " at " + describe(call.site);
}

std::optional<std::string> disagreement(const Call& a, int a_rank, const Call& b, int b_rank, bool same_site) {
  if (a.verb != b.verb) return "verb";
  if (a.verb != Verb::kBarrier) {
    const at::Tensor& x = payload(a);
    const at::Tensor& y = payload(b);
    if (x.scalar_type() != y.scalar_type()) return "dtype";
    const bool in_place = a.verb == Verb::kAllReduce || a.verb == Verb::kBroadcast;
    if (in_place ? x.sizes() != y.sizes() : !same_row_shape(x, y)) return "shape";
  }
  if (is_reduction(a.verb) && (a.op != b.op || a.reduce_in_fp32 != b.reduce_in_fp32)) return "reduction";
  if (a.verb == Verb::kBroadcast && a.peer != b.peer) return "root";
  if (!same_rows(a, a_rank, b, b_rank)) return "rows";
  if (same_site && (a.site.line != b.site.line || describe(a.site) != describe(b.site))) return "call site";
  return std::nullopt;
}

std::optional<std::string> message_disagreement(const Call& send, const Call& recv) {
  if (send.input.scalar_type() != recv.output.scalar_type()) return "dtype";
  if (send.input.sizes() != recv.output.sizes()) return "shape";
  return std::nullopt;
}

int64_t logical_bytes(const Call& call) {
  switch (call.verb) {
    case Verb::kBarrier:
      return 0;
    case Verb::kAllGather:
      return static_cast<int64_t>(call.output.nbytes());
    default:
      return static_cast<int64_t>(payload(call).nbytes());
  }
}

}  // namespace ranklab
