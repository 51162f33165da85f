#include "core/parallel/expert/wire_rows.h"

#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/parallel/quantized/operand_rounding.h"
#include "core/precision/scaled_matrix.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// Straight-through gradient.
struct RoundRows : CustomFunction<RoundRows> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& rows, const TensorPrecision& precision) {
    const at::Tensor rounded = round_operand(rows, {.precision = precision}).values;
    const NoCostScope free;
    return rounded.to(rows.scalar_type());
  }
  static variable_list backward(AutogradContext*, const variable_list& grads) { return {grads[0], {}}; }
};

void write_packed(const at::Tensor& wide, const WireFormat& format, const at::Tensor& packed) {
  auto* out = reinterpret_cast<std::byte*>(packed.mutable_data_ptr<uint8_t>());
  pack_matrix({wide.const_data_ptr<float>(), wide.size(0), format.columns, format.columns}, format.precision,
              Along::kColumns, nullptr, {out, static_cast<size_t>(packed.numel())});
}

void read_packed(const at::Tensor& packed, const WireFormat& format, const at::Tensor& token) {
  const auto* in = reinterpret_cast<const std::byte*>(packed.const_data_ptr<uint8_t>());
  unpack_matrix({in, static_cast<size_t>(packed.numel())}, format.precision, Along::kColumns, token.size(0),
                format.columns, 0, token.mutable_data_ptr<float>());
}

}  // namespace

at::Tensor round_rows(const at::Tensor& rows_NH, const TensorPrecision& precision) {
  return precision.quantized() && rows_NH.size(0) > 0 ? RoundRows::apply(rows_NH, precision) : rows_NH;
}

at::Tensor row_bytes(const at::Tensor& rows_NW) {
  const int64_t width = rows_NW.size(1) * static_cast<int64_t>(rows_NW.itemsize());
  return rows_NW.contiguous().view(at::kByte).view({rows_NW.size(0), width});
}

at::Tensor to_wire(const at::Tensor& rows_NW, const WireFormat& format) {
  const NoCostScope free;
  const int64_t count = rows_NW.size(0), rest = rows_NW.size(1) - format.columns;
  const PackedLayout layout = packed_layout(format.precision, Along::kColumns, count, format.columns);
  const at::Device host = host_side(rows_NW);
  at::Tensor packed = at::empty({count, layout.row_bytes()}, at::TensorOptions(at::kByte).device(host));
  if (count > 0) {
    const at::Tensor wide = rows_NW.narrow(1, 0, format.columns).to(host, at::kFloat).contiguous();
    if (!wide.is_meta()) write_packed(wide, format, packed);
  }
  packed = packed.to(rows_NW.device());
  return rest == 0 ? packed : at::cat({packed, row_bytes(rows_NW.narrow(1, format.columns, rest))}, 1);
}

at::Tensor from_wire(const at::Tensor& bytes, const WireFormat& format, int64_t width, at::ScalarType type) {
  const NoCostScope free;
  const int64_t count = bytes.size(0), rest = width - format.columns;
  const PackedLayout layout = packed_layout(format.precision, Along::kColumns, count, format.columns);
  const at::Device host = host_side(bytes);
  at::Tensor token = at::empty({count, format.columns}, at::TensorOptions(at::kFloat).device(host));
  if (count > 0) {
    const at::Tensor packed = bytes.narrow(1, 0, layout.row_bytes()).to(host).contiguous();
    if (!packed.is_meta()) read_packed(packed, format, token);
  }
  token = token.to(bytes.device());
  if (rest == 0) return token.to(type);
  const at::Tensor others =
      bytes.narrow(1, layout.row_bytes(), bytes.size(1) - layout.row_bytes()).clone(at::MemoryFormat::Contiguous);
  return at::cat({token.to(type), others.view(type).view({count, rest})}, 1);
}

}  // namespace ranklab
