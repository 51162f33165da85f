#include "backends/cpu_sim/processes/wire.h"

#include <utility>

#include "core/comm/call_check.h"
#include "core/sim/aten.h"

namespace ranklab::cpu_sim {

void pack_call(Packer& packer, const Call& call) {
  const at::Tensor& tensor = payload(call);
  packer.number(static_cast<int64_t>(call.verb))
      .number(static_cast<int64_t>(call.op))
      .number(call.reduce_in_fp32 ? 1 : 0)
      .number(call.peer)
      .number(call.tag)
      .numbers(call.input_splits)
      .numbers(call.output_splits)
      .text(call.site.file)
      .number(call.site.line)
      .number(call.posted_virtual_ns)
      .number(call.posted_bytes)
      .number(call.blocking ? 1 : 0)
      .number(tensor.defined() ? static_cast<int64_t>(tensor.scalar_type()) : -1)
      .numbers(tensor.defined() ? tensor.sizes() : at::IntArrayRef());
}

Call unpack_call(Unpacker& unpacker, SourceFiles& files) {
  Call call;
  call.verb = static_cast<Verb>(unpacker.number_between(0, static_cast<int64_t>(Verb::kCount) - 1));
  call.op = static_cast<ReduceOp>(unpacker.number_between(0, static_cast<int64_t>(ReduceOp::kMax)));
  call.reduce_in_fp32 = unpacker.flag();
  call.peer = unpacker.number_between(-1, 1 << 20);
  call.tag = unpacker.number_between(INT32_MIN, INT32_MAX);
  call.input_splits = unpacker.numbers();
  call.output_splits = unpacker.numbers();
  call.site.file = files.keep(unpacker.text());
  call.site.line = static_cast<uint32_t>(unpacker.number_between(0, INT32_MAX));
  call.posted_virtual_ns = unpacker.number();
  call.posted_bytes = unpacker.number();
  call.blocking = unpacker.flag();
  const int dtype = unpacker.number_between(-1, static_cast<int64_t>(at::ScalarType::NumOptions) - 1);
  const std::vector<int64_t> sizes = unpacker.numbers();
  if (dtype < 0) return call;
  at::Tensor tensor = at::empty(sizes, at::TensorOptions(at::kMeta).dtype(static_cast<at::ScalarType>(dtype)));
  (call.verb == Verb::kRecv ? call.output : call.input) = std::move(tensor);
  return call;
}

void pack_error(Packer& packer, const Error& error) {
  const ErrorText& text = error.text();
  packer.number(static_cast<int64_t>(error.kind()));
  for (const std::string* part : {&text.where, &text.what, &text.got, &text.want, &text.fix}) packer.text(*part);
}

Error unpack_error(Unpacker& unpacker) {
  const auto kind = static_cast<ErrorKind>(unpacker.number_between(0, static_cast<int64_t>(ErrorKind::kInternal)));
  ErrorText text;
  for (std::string* part : {&text.where, &text.what, &text.got, &text.want, &text.fix}) *part = unpacker.text();
  return Error(kind, std::move(text));
}

}  // namespace ranklab::cpu_sim
