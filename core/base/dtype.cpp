#include "core/base/dtype.h"

#include <array>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<Row, 10> kRows = {{{DType::kFloat32, "fp32", 4},
                                        {DType::kFloat64, "fp64", 8},
                                        {DType::kBFloat16, "bf16", 2},
                                        {DType::kFloat16, "fp16", 2},
                                        {DType::kFloat8, "fp8", 1},
                                        {DType::kInt64, "int64", 8},
                                        {DType::kInt32, "int32", 4},
                                        {DType::kUInt8, "uint8", 1},
                                        {DType::kBool, "bool", 1},
                                        {DType::kOther, "other", 1}}};

}  // namespace

int64_t size_bytes(DType dtype) { return kRows[static_cast<size_t>(dtype)].bytes; }
std::string_view name(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

DType parse_dtype(std::string_view text) {
  for (const Row& row : kRows)
    if (row.name == text) return row.dtype;
  throw Error(ErrorKind::kInvalidArgument, {.where = "dtype",
                                            .what = "unknown element type",
                                            .got = quote(text),
                                            .want = "one of " + join(row_names(kRows), ", "),
                                            .fix = "use one of them"});
}

}  // namespace ranklab
