#include "core/parallel/expert/wire_rows.h"

#include "core/nn/custom_function.h"
#include "core/parallel/quantized/device_operand.h"
#include "core/parallel/quantized/operand_rounding.h"
#include "core/parallel/quantized/packed_rows.h"
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

at::Tensor packed_tokens(const at::Tensor& tokens, const WireFormat& format) {
  const int64_t count = tokens.size(0);
  if (const DeviceRounding* device = rounding_of(tokens); device != nullptr && count > 0)
    return packed_rows(tokens, format.precision, *device);
  const PackedLayout layout = packed_layout(format.precision, Along::kColumns, count, format.columns);
  at::Tensor packed = at::empty({count, layout.row_bytes()}, tokens.options().dtype(at::kByte));
  const at::Tensor wide = tokens.to(at::kFloat).contiguous();
  if (count == 0 || wide.is_meta()) return packed;
  auto* out = reinterpret_cast<std::byte*>(packed.mutable_data_ptr<uint8_t>());
  pack_matrix({wide.const_data_ptr<float>(), count, format.columns, format.columns}, format.precision, Along::kColumns,
              nullptr, {out, static_cast<size_t>(packed.numel())});
  return packed;
}

at::Tensor unpacked_tokens(const at::Tensor& bytes, const WireFormat& format) {
  const int64_t count = bytes.size(0);
  if (rounding_of(bytes) != nullptr && count > 0) return unpacked_rows(bytes, format.precision, format.columns);
  at::Tensor tokens = at::empty({count, format.columns}, bytes.options().dtype(at::kFloat));
  const at::Tensor packed = bytes.contiguous();
  if (count == 0 || packed.is_meta()) return tokens;
  const auto* in = reinterpret_cast<const std::byte*>(packed.const_data_ptr<uint8_t>());
  unpack_matrix({in, static_cast<size_t>(packed.numel())}, format.precision, Along::kColumns, count, format.columns, 0,
                tokens.mutable_data_ptr<float>());
  return tokens;
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
  const int64_t rest = rows_NW.size(1) - format.columns;
  const at::Tensor packed = packed_tokens(rows_NW.narrow(1, 0, format.columns), format);
  return rest == 0 ? packed : at::cat({packed, row_bytes(rows_NW.narrow(1, format.columns, rest))}, 1);
}

at::Tensor from_wire(const at::Tensor& bytes, const WireFormat& format, int64_t width, at::ScalarType type) {
  const NoCostScope free;
  const int64_t count = bytes.size(0), rest = width - format.columns;
  const PackedLayout layout = packed_layout(format.precision, Along::kColumns, count, format.columns);
  const at::Tensor token = unpacked_tokens(bytes.narrow(1, 0, layout.row_bytes()), format);
  if (rest == 0) return token.to(type);
  const at::Tensor others =
      bytes.narrow(1, layout.row_bytes(), bytes.size(1) - layout.row_bytes()).clone(at::MemoryFormat::Contiguous);
  return at::cat({token.to(type), others.view(type).view({count, rest})}, 1);
}

}  // namespace ranklab
